-- acquire: take a free lock for an owner that has never held it.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the owner's tombstone, string
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- Reply    0    the owner holds the lock: taken now, or found so (then nothing is changed)
--          > 0  held by another, whose lease ends in so many ms
--          -1   held by another, without expiry
--          -2   the owner has been given up by clean_up; nothing is changed
-- Repeat: safe. The owner's own field is found and left as it is, the expiry too.
if #ARGV[1] == 0 then
  return redis.error_reply('ERR owner must not be empty')
end
if #ARGV[2] > 15 or not string.find(ARGV[2], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end

if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  local set = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if set ~= 1 then -- refused: a lock without expiry must not stay
    redis.call('HDEL', KEYS[1], ARGV[1])
    return set
  end
  return 0
end

if redis.call('EXISTS', KEYS[2]) == 1 then
  return -2
end
local fields = redis.call('HRANDFIELD', KEYS[1], '2') -- never all of them: what others keep there may be large
if fields[2] or not string.find(fields[1], '^%-....%-....%-....%-', 9) or not string.find(fields[1], '^:%-?%d+$', 37) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
if fields[1] == ARGV[1] then
  return 0
end
local left = redis.call('PTTL', KEYS[1])
if left == -1 then
  return -1
end
return math.max(left, 1)
