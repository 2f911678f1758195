-- fair_release: end the owner's hold with all its entries, and give the lock to the next waiter.
-- KEYS[6]  optional, the owner's tombstone, string: for an owner of which an unanswered call may still arrive
-- ARGV[2]  owner
-- ARGV[3]  the last fence number used, if reserved ones are left over; otherwise 0
-- ARGV[i]  for i from 4 on: the members of the hold's run that have been served, in their order; they leave the queue
-- Reply    1     released
--          2     released; a heartbeat should follow soon: a Java waiter has the turn, or too many waiters were dead
--          0     the owner does not hold the lock; only the members have left
--          text  released, and granted to a waiter of this client: the grant, as serve returns it
-- Repeat: safe. The second finds no field, and serves no waiter.
--@include parts/fair.lua
if #ARGV[3] > 16 or not string.find(ARGV[3], '^%d+$') then
  return redis.error_reply('ERR last fence must be a whole number from 0 to 9999999999999999')
end

local held = call('HDEL', lock, ARGV[2])
if KEYS[6] then
  try('SET', KEYS[6], '1', 'PX', '60000')
  if try('ZREM', scores, ARGV[2]) == 1 then -- a late enter put it back after its hold had expired
    try('LREM', queue, '-1', ARGV[2])
  end
end
-- By try, here and below: the hold has ended, even if the queue is of a wrong type. Between the first member and the last there
-- are only members of the run: if they are as many as were served, and at the head, they leave at once. A waiter that could not
-- receive its grant may stand before them.
local served = #ARGV - 3
if served > 0 then
  local i, first = #ARGV, unpack(ARGV, 4)
  local row = try('LINDEX', queue, '0') == first and try('LINDEX', queue, served - 1) == ARGV[i]
  if not row or not try('LTRIM', queue, served, '-1').ok then
    for i = 4, #ARGV do
      try('LREM', queue, '1', ARGV[i])
    end
  end
  try('ZREM', scores, unpack(ARGV, 4))
end
if held == 0 then
  return 0
end
if ARGV[3] ~= '0' then
  local last = ARGV[3]
  --@include parts/give_back.lua
end
local pair = try('LRANGE', queue, '0', '1')
if not pair[1] then
  return 1
end

--@include parts/settings.lua
--@include parts/serve.lua
local me = string.sub(ARGV[2], 1, 36)
local _, outcome, grant = pcall(serve, pair, nil, lock, queue, scores, heartbeats, counter, me)
return grant or (outcome == 'again' and 2 or 1)
