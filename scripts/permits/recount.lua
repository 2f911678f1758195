-- permits_recount: set the label of an owner that has a permit; its nested entries are not counted in Redis. The leases stay as
-- they are. It works on a Redis that is out of memory.
-- KEYS[1]  the permits, sorted set owner -> epoch ms: when its lease ends
-- KEYS[2]  their settings, hash owner -> its label
-- ARGV[1]  owner
-- ARGV[2]  its label; empty: none
-- Reply    1    the owner has a permit
--          0    it has none; nothing is changed
-- Repeat: safe.
local settings, owner, label = KEYS[2], ARGV[1], ARGV[2]
--@include parts/now.lua
if tonumber(redis.call('ZSCORE', KEYS[1], owner) or 0) <= now then
  return 0
end
if label == '' then
  redis.call('HDEL', settings, owner)
elseif redis.call('EXISTS', settings) == 1 then -- else somebody has deleted them, and a new hash would have no expiry
  redis.call('HDEL', settings, '') -- changes nothing. Behind it, Redis takes HSET also when out of memory
  redis.call('HSET', settings, owner, label)
end
return 1
