-- fair_leave: give up owners of this client, wherever they are: they leave the queue, and end their hold if they have been
-- granted the lock meanwhile. If the lock is free then, the next who waits gets it.
-- KEYS[i+4]  the tombstone of the owner ARGV[i], string; for the first owners only, as many as have a call of theirs
--            that was not answered and may still arrive
-- ARGV[2]    an owner, of the caller
-- ARGV[i]    another, for i from 3 on
-- Reply    1     done
--          2     done; a look should follow soon: a Java waiter has the turn, or the dead were too many
--          text  done, and granted to a waiter of this client, as fair says
-- An error of Redis is about the hold; the places in the queue have been left all the same.
-- Repeat: safe. The second finds nothing to give up.
if #ARGV < 2 or #KEYS - 5 > #ARGV - 1 then
  return redis.error_reply('ERR owners must not be fewer than tombstones')
end

local refused
for i = 2, #ARGV do -- each step by try: a key of a wrong type must not keep the owners in the others
  local ended = try('HDEL', lock, ARGV[i])
  if type(ended) == 'table' then
    refused = ended
  end
  if KEYS[i + 4] then
    try('SET', KEYS[i + 4], '1', 'PX', '60000')
  end
  if try('ZREM', scores, ARGV[i]) ~= 0 or KEYS[i + 4] then
    try('LREM', queue, 1, ARGV[i])
  end
end
if refused then
  return refused
end
if call('EXISTS', lock) == 1 then
  return 1
end
local pair = try('LRANGE', queue, '0', '1') -- what is done is done, whatever a queue of a wrong type says
if not pair[1] then
  return 1
end
