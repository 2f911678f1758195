-- clean_up: give up an owner whose acquire may still be on its way. Ends its hold as release does, and leaves a
-- tombstone for a minute, so that an acquire that arrives late takes nothing.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the owner's tombstone, string
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock; the message is 0
-- Reply    >= 0  released; so many subscribers were notified
--          -1    the owner did not hold the lock
--          -2    released; Redis refused the message
-- Repeat: safe. The second finds no field and renews the tombstone.
local held = redis.call('HDEL', KEYS[1], ARGV[1])
redis.pcall('SET', KEYS[2], '1', 'PX', '60000')
if held == 0 then
  return -1
end
local notified = redis.pcall('PUBLISH', ARGV[2], '0')
return type(notified) == 'number' and notified or -2
