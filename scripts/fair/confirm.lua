-- fair_confirm: set the lease and the label that an owner with a grant asked for, and reserve fence numbers. It works on a Redis that is out of memory.
-- ARGV[2]  owner
-- ARGV[3]  lease in ms from now, 1 to 999999999999999
-- ARGV[4]  the first fence number that came with the grant, or 0
-- ARGV[5]  the last one. The hold has these if the counter still says so, and they are not behind the clock: others would be ahead
--          of the clock by as many
-- ARGV[6]  optional, what the field holds instead of what the grant has put there: 1, and behind a space the label of the owner, if any
-- Reply    a number; with fencing, if it is 1, {1, first, last}: the fence numbers reserved
--          1    the owner holds the lock, for that lease from now
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. Each run sets the lease from its own time. It reserves other, larger numbers unless those of the grant are good.
--@include parts/fair.lua
--@include parts/settings.lua
local lease = ARGV[3]
--@include parts/lease.lua
if not string.find(ARGV[4] .. ' ' .. ARGV[5], '^%d+ %d+$') then
  return redis.error_reply('ERR fence numbers of a grant must be whole numbers')
end

if call('HEXISTS', lock, ARGV[2]) == 0 then
  return call('HDEL', lock, ARGV[2]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
call('HDEL', lock, '') -- changes nothing. Behind it, Redis takes SET also when out of memory
local reply = 1
if reserve ~= '0' then
  --@include parts/fence.lua
  local time, first, last = call('TIME'), tonumber(ARGV[4]), tonumber(ARGV[5])
  local now = time[1] * 1000000 + time[2]
  if last < now or try('GET', counter) ~= ARGV[5] then -- then its run needs as many others
    first, last = mint(counter, counter_expiry, first == 0 and 1 or reserve, now)
  end
  if not first then
    return last
  end
  reply = {1, first, last}
end
call('PEXPIRE', lock, lease)
if ARGV[6] then
  redis.pcall('HSET', lock, ARGV[2], ARGV[6]) -- as far as Redis lets it: only people read it
end
return reply
