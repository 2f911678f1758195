-- fair_acquire: take a lock that is free and that nobody waits for, for an owner that has never held it.
-- KEYS[6]  the owner's tombstone, string
-- ARGV[2]  owner
-- ARGV[3]  lease in ms, 1 to 999999999999999
-- Reply    a number; with fencing, if it is 0, {0, first, last}: the fence numbers reserved
--          0    the owner holds the lock: taken now, or found so
--          > 0  held by another, whose lease ends in so many ms; 1 if it is free and others are before
--          -1   held by another, without expiry
--          -2   the owner has been given up by fair_leave; nothing is changed
-- Repeat: safe. A repeat that finds its own field reserves other, larger numbers.
if string.sub(ARGV[2], 37, 38) ~= ':0' then
  return redis.error_reply('ERR owner must be client:0number')
end
if #ARGV[3] > 15 or not string.find(ARGV[3], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end

-- The commonest case, without fencing, by itself, before there are functions.
if string.sub(ARGV[1], -2) == ' 0' and call('EXISTS', lock, queue, KEYS[6]) == 0 then
  call('HSET', lock, ARGV[2], '1')
  local set = try('PEXPIRE', lock, ARGV[3])
  if set ~= 1 then -- refused: a lock without expiry must not stay
    call('HDEL', lock, ARGV[2])
    return set
  end
  return 0
end
