-- semaphore_force_release: take back all permits of a key, and notify its channel. A number that an operator has set stays.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash
-- ARGV[1]  channel of the key; the message is 0
-- Reply    1    some were taken, and all are free now
--          0    all were free
-- Repeat: unsafe. A second run may end the permit of an owner that took it in between.
local holds, record = KEYS[1], KEYS[2]
--@include parts/holds.lua
if not any then
  return redis.call('ZREM', holds, '') -- 0; refused where no writes are taken, as by a replica, which may not know of the holds yet
end
--@include parts/now.lua
local taken, owners = redis.call('ZCOUNT', holds, live, '+inf'), redis.call('ZRANGE', holds, '0', '-1')
if redis.call('HEXISTS', record, 'resized') == 1 then
  redis.call('DEL', holds)
  for i = 1, #owners, 1000 do
    redis.pcall('HDEL', record, unpack(owners, i, math.min(i + 999, #owners)))
  end
else
  redis.call('DEL', holds, record)
end
redis.pcall('PUBLISH', ARGV[1], '0')
return taken > 0 and 1 or 0
