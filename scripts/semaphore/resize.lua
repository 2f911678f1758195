-- semaphore_resize: set how many permits a key has, for operators: the numbers of lockers no longer count, until nobody has
-- used the key for a week. Notifies the channel of the key. Whoever has a permit keeps it.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash
-- ARGV[1]  how many permits there are from now on, 1 to 10000
-- ARGV[2]  channel of the key; the message is 0
-- Reply    1    set
-- Repeat: safe. The number is given, not added to.
local holds, record, wanted = KEYS[1], KEYS[2], ARGV[1]
--@include parts/permits.lua

--@include parts/holds.lua
--@include parts/now.lua
local latest = redis.call('ZRANGE', holds, '-1', '-1', 'WITHSCORES')[2] or now
local before = redis.call('HMGET', record, 'permits', 'resized')
redis.call('HSET', record, 'permits', wanted, 'resized', '1')
local set = redis.pcall('PEXPIRE', record, string.format('%.0f', math.max(latest - now, 604800000)))
if set ~= 1 then -- refused: no permit record without expiry must stay
  if not before[1] then
    redis.call('DEL', record)
  else
    redis.call('HSET', record, 'permits', before[1])
    if not before[2] then
      redis.call('HDEL', record, 'resized')
    end
  end
  return set
end
redis.pcall('PUBLISH', ARGV[2], '0')
return 1
