-- fair_acquire: take a free lock without waiters, for an owner that has never held it.
-- KEYS[6]  the owner's tombstone, string
-- ARGV[2]  owner
-- ARGV[3]  lease in ms, 1 to 999999999999999
-- ARGV[4]  what the field holds: 1, and behind a space the label of the owner, if it has one
-- Reply    a number; with fencing, if it is 0, {0, first, last}: the fence numbers reserved
--          0    the owner holds the lock: taken now, or found so
--          > 0  held by another: ms until its lease ends; 1 if the lock is free and others wait
--          -1   held by another, without expiry
--          text  either of the two, a space, and the label of the other
--          -2   the owner has been given up by fair_leave; nothing is changed
-- Repeat: safe. A repeat that finds its own field reserves other, larger numbers.
--@include parts/fair.lua
local owner, lease, value = ARGV[2], ARGV[3], ARGV[4]
if string.sub(owner, 37, 38) ~= ':0' then
  return redis.error_reply('ERR owner must be client:0number')
end
--@include parts/lease.lua

local free = call('EXISTS', lock, queue, KEYS[6]) == 0
if free and string.sub(ARGV[1], -2) == ' 0' then -- the most common case, without fencing
  --@include parts/take.lua
  return 0
end

--@include parts/settings.lua
if not free then
  if call('EXISTS', KEYS[6]) == 1 then
    return -2
  end
  --@include parts/holder.lua
  if holder and holder ~= owner then
    --@include parts/held.lua
  end
  if not holder then -- others wait
    --@include parts/serve.lua
    -- No waiter has the client '', so a waiter of the caller also gets its grant in its inbox.
    local outcome = serve(call('LRANGE', queue, '0', '1'), nil, lock, queue, scores, heartbeats, counter, '')
    if outcome ~= 'nobody' or call('EXISTS', queue) == 1 then
      return 1
    end
    free = true
  end
end

local reply, reserve = 0, reserve ~= '0' and 1
--@include parts/reserve.lua
if free then
  --@include parts/take.lua
end
return reply
