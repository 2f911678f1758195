-- fair_release: end the owner's hold, whatever its count, and give the lock to the next who waits.
-- KEYS[6]  optional, the owner's tombstone, string: for an owner of which an unanswered call may still arrive
-- ARGV[4]  owner
-- ARGV[5]  the last fence number that was used, if reserved ones are left over; else 0
-- ARGV[i]  for i from 6 on: the members of the hold's run that have been served, in their order; they leave the queue
-- Reply    1     released
--          2     released; a look should follow soon: a Java waiter has the turn, or the dead were too many
--          0     the owner does not hold the lock; only the members have left
--          text  released, and granted to a waiter of this client, as fair says
-- Repeat: safe. The second finds no field, and serves nobody.
if #ARGV[5] > 16 or not string.find(ARGV[5], '^%d+$') then
  return redis.error_reply('ERR last fence must be a whole number from 0 to 9999999999999999')
end

local held = call('HDEL', lock, ARGV[4])
if KEYS[6] then
  try('SET', KEYS[6], '1', 'PX', '60000')
  if try('ZREM', scores, ARGV[4]) == 1 then -- a late enter put it back after its hold had expired
    try('LREM', queue, 1, ARGV[4])
  end
end
local function take_out_members()
  local count = #ARGV - 5
  local heads = call('LRANGE', queue, 0, count - 1)
  local same = true
  for i = 6, #ARGV do
    same = same and heads[i - 5] == ARGV[i]
  end
  if same then
    call('LPOP', queue, count)
  else
    for i = 6, #ARGV do
      call('LREM', queue, 1, ARGV[i])
    end
  end
  call('ZREM', scores, unpack(ARGV, 6))
end
if #ARGV > 5 then
  pcall(take_out_members) -- what is done is done, whatever a queue of a wrong type says
end
if held == 0 then
  return 0
end
if ARGV[5] ~= '0' then
  unmint(ARGV[5])
end
local _, who, grant = pcall(serve)
return grant or (who == 'again' and 2 or 1)
