-- fair_leave: give up owners of this client: they leave the queue, and an owner that has got the lock by then releases it. If
-- the lock is free then, the next waiter gets it.
-- KEYS[i+4]  the tombstone of the owner ARGV[i], string; for the first owners only, of which an unanswered call may still
--            arrive
-- ARGV[2]    an owner, of the caller
-- ARGV[i]    another, for i from 3 on
-- Reply    1     done
--          2     done; a heartbeat should follow soon: a Java waiter has the turn, or too many waiters were dead
--          text  done, and granted to a waiter of this client: the grant, as serve returns it
-- An error of Redis concerns the hold; the owners have still left the queue.
-- Repeat: safe. The second finds nothing to give up.
--@include parts/fair.lua
--@include parts/settings.lua
if #ARGV < 2 or #KEYS - 5 > #ARGV - 1 then
  return redis.error_reply('ERR owners must not be fewer than tombstones')
end

local refused
local leaving, scored = {}, {}
for i = 2, #ARGV do -- each step by try: a key of a wrong type must not keep the owners in other keys
  local ended = try('HDEL', lock, ARGV[i])
  if type(ended) == 'table' then
    refused = ended
  end
  if KEYS[i + 4] then
    try('SET', KEYS[i + 4], '1', 'PX', '60000')
  end
  local score = try('ZREM', scores, ARGV[i]) ~= 0
  if score or KEYS[i + 4] then
    leaving[#leaving + 1], scored[ARGV[i]] = ARGV[i], score
  end
end

-- A list has no short way to its middle, but owners that give up are often near one of its ends. So search an owner from the
-- tail first, near which new waiters stand, and then from the head; without a score it is nowhere else. Owners that leave
-- together often stand together: rename the neighbours of one that was found to the first owner, and remove all of that name in
-- one walk.
local mark, marked, from_tail, done = leaving[1], 0, true, {}
for _, owner in ipairs(leaving) do
  if not done[owner] then
    done[owner] = true
    local at, row = try('LPOS', queue, owner, 'RANK', '-1', 'MAXLEN', '1000'), {}
    local late = type(at) == 'number'
    if #leaving > 1 and not late and scored[owner] then
      at = try('LPOS', queue, owner)
    end
    local first = type(at) == 'number' and math.max(at - 500, 0)
    if #leaving > 1 and first then
      row = try('LRANGE', queue, first, at + 500)
    end
    local found = not late and not scored[owner]
    for i, near in ipairs(row) do
      local own = near == owner
      if (own or scored[near] ~= nil and not done[near]) and (near == mark or try('LSET', queue, first + i - 1, mark).ok) then
        found, marked, done[near], from_tail = found or own, marked + 1, true, from_tail and late
      end
    end
    if not found then
      try('LREM', queue, late and '-1' or '1', owner)
    end
  end
end
if marked > 0 then
  try('LREM', queue, from_tail and -marked or marked, mark)
end
if refused then
  return refused
end
local pair = try('LRANGE', queue, '0', '1') -- by try: the owners have left, even if the queue is of a wrong type
if pair[1] and string.sub(pair[1], 37, 38) ~= ':0' then
  --@include parts/stay.lua
end
if not pair[1] or call('EXISTS', lock) == 1 then
  return 1
end

--@include parts/serve.lua
local me = string.sub(ARGV[2], 1, 36)
local _, outcome, grant = pcall(serve, pair, nil, lock, queue, scores, heartbeats, counter, me)
return grant or (outcome == 'again' and 2 or 1)
