-- quorum_fence: write the number of a quorum back to a node, before the holder gets it, so that the next holder of the lock
-- finds it on some node of its own quorum.
-- KEYS[1]  the lock, hash owner -> entries
-- KEYS[2]  the fence counter, string: the last number reserved
-- ARGV[1]  owner
-- ARGV[2]  the last number reserved, 1 to 9000000000000000: above 2^53, Lua cannot represent every whole number
-- ARGV[3]  expiry of the counter in ms, 0 to 999999999999999; 0: none. A counter without expiry keeps none (it is Java's).
-- Reply    1    the counter is at that number, or above it
--          0    the owner does not hold the lock; nothing is changed: an older number must not meet a newer holder's
-- Repeat: safe.
if #ARGV[2] > 16 or not string.find(ARGV[2], '^[1-9]%d*$') or tonumber(ARGV[2]) > 9e15 then
  return redis.error_reply('ERR last fence must be a whole number from 1 to 9000000000000000')
end
if #ARGV[3] > 15 or not string.find(ARGV[3], '^%d+$') then
  return redis.error_reply('ERR counter expiry must be a whole number of ms from 0 to 999999999999999')
end

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local present = redis.call('GET', KEYS[2])
if not present or tonumber(present) < tonumber(ARGV[2]) then
  if ARGV[3] == '0' or (present and redis.call('PTTL', KEYS[2]) == -1) then
    redis.call('SET', KEYS[2], ARGV[2])
  else
    redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  end
end
return 1
