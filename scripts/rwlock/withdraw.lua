-- rwlock_withdraw: end the wish of a client for a read/write lock, and wake those who let it go first.
-- KEYS[1]  the wishes, hash, see rwlock/acquire.lua
-- ARGV[1]  client
-- ARGV[2]  channel of the lock; the message is 1
-- Reply    1    it had a wish
--          0    it had none
-- Repeat: safe. The second finds none.
local ended = redis.call('HDEL', KEYS[1], 'writer ' .. ARGV[1], 'next ' .. ARGV[1])
local readers = redis.call('HDEL', KEYS[1], 'reader ' .. ARGV[1]) -- nobody lets these go first
if ended > 0 then
  redis.pcall('PUBLISH', ARGV[2], '1')
end
return math.min(ended + readers, 1)
