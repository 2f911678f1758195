-- rwlock_force_release: free a read/write lock from its writer and all readers, and wake all who wait.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the absent key, see parts/living.lua
-- ARGV[1]  channel of the lock; the message is 1
-- Reply    1    it was held and is free now
--          0    it was free
-- Repeat: unsafe. A second run may end the holds of owners that took the lock in between.
local lock, absent = KEYS[1], KEYS[2]
local leaver
--@include parts/living.lua
if not mode then
  return redis.call('HDEL', lock, '') -- 0; refused where no writes are taken, as by a replica, which may not know of the hold yet
end
redis.call('DEL', lock)
for i = 1, #fields, 2 do
  redis.call('DEL', timeouts .. fields[i] .. ':rwlock_timeout:1') -- those of Java's nested entries expire
end
redis.pcall('PUBLISH', ARGV[1], '1')
return 1
