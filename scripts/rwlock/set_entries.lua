-- rwlock_set_entries: set the number of entries of a hold of a read/write lock, as a nested entry begins or ends, and the label of
-- its owner. The expiries stay as they are.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the owner's timeout key, string: 1, and behind a space the label
-- ARGV[1]  owner
-- ARGV[2]  the new number of entries, 1 to 99999, and behind a space the label of the owner, if it has one
-- Reply    1    set
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. The number is given, not added to.
local owner, value = ARGV[1], ARGV[2]
--@include parts/entries.lua
if #entries > 5 then -- as parts/living.lua reads it
  return redis.error_reply('ERR entries of a read/write lock must be a whole number from 1 to 99999')
end

if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return redis.call('HDEL', KEYS[1], owner) -- changes nothing, but is refused by a replica, which may not know of the hold yet
elseif redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.call('DEL', KEYS[2])
end
redis.call('SET', KEYS[2], '1' .. string.sub(value, #entries + 1), 'KEEPTTL')
redis.call('HSET', KEYS[1], owner, entries)
return 1
