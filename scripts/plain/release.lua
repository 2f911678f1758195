-- release: end the owner's hold, whatever its count, and notify the lock's channel.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  optional, the fence counter, string: give back the numbers that were reserved but not used
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock; the message is 0
-- ARGV[3]  with KEYS[2]: the last fence number used, 1 to 9999999999999999
-- Reply    >= 0  released: the number of subscribers that were notified
--          -1    the owner does not hold the lock; nothing is changed
--          -2    released; Redis refused the message
-- Repeat: safe. The second finds no field.
-- Giving back is safe because numbers are reserved only for the holder: while the owner's field stands, all numbers above the
-- last used one are its own, and no other client has seen them. The counter is only ever lowered to a number in use, with its
-- expiry kept, and never created. Redis refuses none of this when it is out of memory.
if KEYS[2] and (#ARGV[3] > 16 or not string.find(ARGV[3], '^[1-9]%d*$')) then
  return redis.error_reply('ERR last fence must be a whole number from 1 to 9999999999999999')
end

if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return -1
end
if KEYS[2] then
  local reserved = redis.pcall('GET', KEYS[2])
  if type(reserved) == 'string' and (tonumber(reserved) or 0) > tonumber(ARGV[3]) then
    redis.pcall('SET', KEYS[2], ARGV[3], 'XX', 'KEEPTTL')
  end
end
local notified = redis.pcall('PUBLISH', ARGV[2], '0')
return type(notified) == 'number' and notified or -2
