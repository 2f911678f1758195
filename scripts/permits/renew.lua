-- permits_renew: push out the leases of many owners, each only while it has its permit: a lease that is over stays over. Each by
-- itself: one that Redis refuses costs the others nothing. It works on a Redis that is out of memory.
-- KEYS[2*i-1]  the permits of a key, sorted set owner -> epoch ms: when its lease ends
-- KEYS[2*i]    their settings, hash
-- ARGV[1]      lease in ms from now, 1 to 999999999999999
-- ARGV[i+1]    an owner of KEYS[2*i-1]
-- Reply      1    all were renewed; else an array with, for each owner:
--            1    renewed
--            0    the owner has no permit; nothing is changed
--            text the error with which Redis refused; nothing is changed
-- Repeat: safe. The leases count from each execution.
local lease = ARGV[1]
--@include parts/lease.lua
if #KEYS ~= 2 * (#ARGV - 1) or #KEYS == 0 then
  return redis.error_reply('ERR owners must be as many as keys')
end
--@include parts/now.lua

local function renew(permits, settings, owner)
  local ends = redis.call('ZSCORE', permits, owner)
  if not ends or tonumber(ends) <= now then
    return 0
  end
  local resized = redis.call('HGET', settings, 'resized')
  local last = math.max(now + lease, redis.call('ZRANGE', permits, '-1', '-1', 'WITHSCORES')[2])
  redis.call('ZREM', permits, '') -- changes nothing. Behind it, Redis takes ZADD also when out of memory
  redis.call('ZADD', permits, 'XX', string.format('%.0f', now + lease), owner)
  --@include parts/keep.lua
  if kept ~= 1 then
    redis.call('ZADD', permits, 'XX', ends, owner)
  end
  return kept
end

local answers, renewed = {}, 0
for i = 1, #ARGV - 1 do
  local fine, answer = pcall(renew, KEYS[2 * i - 1], KEYS[2 * i], ARGV[i + 1])
  if type(answer) == 'table' then
    answer = answer.err
  end
  if answer == 1 then
    renewed = renewed + 1
  end
  answers[i] = answer
end
if renewed == #ARGV - 1 then
  return 1
end
return answers
