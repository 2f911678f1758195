-- force_release: free a lock from any holder, and notify its channel.
-- KEYS[1]  the lock, hash owner -> entries
-- ARGV[1]  channel of the lock; the message is 0
-- Reply    1    it was held and is free now
--          0    it was free
-- Repeat: unsafe. A second run may end the hold of an owner that took the lock in between.
local lock = KEYS[1]
--@include parts/holder.lua
if not holder then
  return redis.call('HDEL', lock, '') -- 0; refused where no writes are taken, as by a replica, which may not know of the hold yet
end
redis.call('DEL', lock)
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
