-- rwlock_share: whether later readers of a client may share the hold of its owner: it lives, and no writer waits. Changes nothing.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the owner's timeout key, string
-- KEYS[3]  the wishes, hash, see rwlock/acquire.lua
-- ARGV[1]  owner, a reader
-- Reply    1    they may
--          0    the owner does not hold the lock, or a writer waits
-- Repeat: safe.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 or redis.call('EXISTS', KEYS[2]) == 0 then
  return 0
end
--@include parts/now.lua
local wished = redis.call('HGETALL', KEYS[3])
for i = 1, #wished, 2 do
  --@include parts/wished.lua
  if who == 'writer' and counts then
    return 0
  end
end
return 1
