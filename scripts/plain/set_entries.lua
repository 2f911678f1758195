-- set_entries: set the number of entries of a hold, as a nested entry begins or ends. The expiry stays as it is.
-- KEYS[1]  the lock, hash owner -> entries and label
-- ARGV[1]  owner
-- ARGV[2]  the new number of entries, 1 to 999999999, and behind a space the label of the owner, if it has one
-- Reply    1    set
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. The number is given, not added to.
local value = ARGV[2]
--@include parts/entries.lua

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return redis.call('HDEL', KEYS[1], ARGV[1]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
redis.call('HSET', KEYS[1], ARGV[1], value)
return 1
