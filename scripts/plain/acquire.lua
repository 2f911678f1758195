-- acquire: take a free lock for an owner that has never held it.
-- KEYS[1]  the lock, hash owner -> count and label
-- KEYS[2]  the owner's tombstone, string
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- ARGV[3]  what the field holds: 1, and behind a space the label of the owner, if it has one
-- Reply    0    the owner holds the lock: taken now, or found so (then nothing is changed)
--          > 0  held by another: ms until its lease ends
--          -1   held by another, without expiry
--          text  either of the two, a space, and the label of the other
--          -2   the owner has been given up by release, which left a tombstone; nothing is changed
-- Repeat: safe. The owner's own field is found and left as it is, the expiry too.
local lock, owner, lease, value = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if #owner == 0 then
  return redis.error_reply('ERR owner must not be empty')
end
--@include parts/lease.lua

if redis.call('EXISTS', lock, KEYS[2]) == 0 then
  --@include parts/take.lua
  return 0
end

if redis.call('EXISTS', KEYS[2]) == 1 then
  return -2
end
--@include parts/holder.lua
if holder == owner then
  return 0
end
--@include parts/held.lua
