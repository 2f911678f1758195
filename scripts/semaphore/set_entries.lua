-- semaphore_set_entries: set the number of entries of an owner that has a permit, and its label. The leases stay as they are. It
-- works on a Redis that is out of memory.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash owner -> entries and label
-- ARGV[1]  owner
-- ARGV[2]  the new number of entries, 1 to 999999999, and behind a space the label of the owner, if it has one
-- Reply    1    set
--          0    the owner has no permit; nothing is changed
-- Repeat: safe. The number is given, not added to.
local record, owner, value = KEYS[2], ARGV[1], ARGV[2]
--@include parts/entries.lua

--@include parts/now.lua
if tonumber(redis.call('ZSCORE', KEYS[1], owner) or 0) <= now then
  return redis.call('ZREM', KEYS[1], '') -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
if redis.call('EXISTS', record) == 1 then -- otherwise somebody has deleted it, and a new hash would have no expiry
  redis.call('HDEL', record, '') -- changes nothing. Behind it, Redis takes HSET also when out of memory
  redis.call('HSET', record, owner, value)
end
return 1
