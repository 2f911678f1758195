-- force_release: free a lock, whoever holds it, and tell those who wait.
-- KEYS[1]  the lock, hash owner -> count
-- ARGV[1]  channel of the lock; the message is 0
-- Reply    1    it was held and is free now
--          0    it was free
-- Repeat: unsafe. A second run may end the hold of whoever took the lock in between.
if redis.call('HLEN', KEYS[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
