-- quorum_undo: give up an owner whose round has failed. Nobody is told: where many ask at once, those who fail would keep
-- waking one another.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  optional, the owner's tombstone, string: for an owner whose acquire was not answered and may still arrive
-- ARGV[1]  owner
-- Reply    1    its hold has ended
--          0    it had none
-- Repeat: safe. The second finds no field and renews the tombstone.
local held = redis.call('HDEL', KEYS[1], ARGV[1])
if KEYS[2] then
  redis.pcall('SET', KEYS[2], '1', 'PX', '60000')
end
return held
