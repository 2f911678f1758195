-- force_release: free a lock, whoever holds it, and tell those who wait.
-- KEYS[1]  the lock, hash owner -> count
-- ARGV[1]  channel of the lock; the message is 0
-- Reply    1    it was held and is free now
--          0    it was free
-- Repeat: unsafe. A second run may end the hold of whoever took the lock in between.
local fields = redis.call('HRANDFIELD', KEYS[1], '2') -- never all of them: what others keep there may be large
if not fields[1] then
  return 0
end
if fields[2] or not string.find(fields[1], '^%-....%-....%-....%-', 9) or not string.find(fields[1], '^:%-?%d+$', 37) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
