-- semaphore_renew: extend the leases of many owners, each only while it has its permit: a lease that has ended stays ended. Each by
-- itself: one that Redis refuses costs the others nothing. It works on a Redis that is out of memory.
-- KEYS[2*i-1]  the holds of a key, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2*i]    the permit record, hash. It is restored if somebody has deleted it
-- ARGV[1]      lease in ms from now, 1 to 999999999999999
-- ARGV[2]      how many permits there are, 1 to 10000, for that
-- ARGV[i+2]    an owner of KEYS[2*i-1]
-- Reply      1    all were renewed; otherwise an array with, for each owner:
--            1    renewed
--            0    the owner has no permit; nothing is changed
--            text the error with which Redis refused; nothing is changed
-- Repeat: safe. The leases count from each execution.
local lease, wanted = ARGV[1], ARGV[2]
--@include parts/lease.lua
if #KEYS ~= 2 * (#ARGV - 2) or #KEYS == 0 then
  return redis.error_reply('ERR owners must be as many as keys')
end
--@include parts/permits.lua
--@include parts/now.lua

local writes, keeps = false, {} -- whether Redis takes writes; the keys that last long enough

local function renew(holds, record, owner)
  local ends = redis.call('ZSCORE', holds, owner)
  if not ends or tonumber(ends) <= now then
    return redis.call('ZREM', holds, '') -- changes nothing, but is refused by a replica, which may not know of the hold yet
  end
  if not writes then
    redis.call('ZREM', holds, '') -- changes nothing. Behind it, Redis takes ZADD and HSET also when out of memory
    writes = true
  end
  if keeps[holds] then
    redis.call('ZADD', holds, 'XX', string.format('%.0f', now + lease), owner)
    return 1
  end
  local reply = redis.call('HMGET', record, 'permits', 'resized')
  local known, resized = reply[1], reply[2]
  local latest = math.max(now + lease, redis.call('ZRANGE', holds, '-1', '-1', 'WITHSCORES')[2])
  redis.call('ZADD', holds, 'XX', string.format('%.0f', now + lease), owner)
  if not known then
    redis.pcall('HSET', record, 'permits', wanted)
  end
  --@include parts/keep.lua
  if kept == 1 then
    keeps[holds] = true
    return 1
  end
  redis.call('ZADD', holds, 'XX', ends, owner)
  if not known then -- no permit record without expiry must stay
    redis.pcall('DEL', record)
  end
  return kept
end

local answers, renewed = {}, 0
for i = 1, #ARGV - 2 do
  local fine, answer = pcall(renew, KEYS[2 * i - 1], KEYS[2 * i], ARGV[i + 2])
  --@include parts/answered.lua
end
return renewed == #answers and 1 or answers
