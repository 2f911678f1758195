-- semaphore_acquire: take one of the permits of a key for an owner that has never had one. An owner has its permit as long as its
-- score is later than the server's clock.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash permits -> how many there are; resized -> 1 if an operator has said so; owner -> entries and
--          label, as in the field of a lock
-- KEYS[3]  the owner's tombstone, string
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- ARGV[3]  how many permits there are, 1 to 10000. An operator's number counts instead
-- ARGV[4]  what the owner's field holds: 1, and behind a space its label, if it has one
-- Reply    0    the owner has a permit: taken now, or found so (then nothing is changed)
--          > 0  all are taken, or some and somebody has deleted the permit record: ms until the first of their leases ends
--          text  the same, a space, and the label of that owner
--          {permits}  the key has another number of permits, on which others have agreed; nothing is changed
--          -2   the owner has been given up by release, which left a tombstone, or its lease has ended; nothing is changed
-- Repeat: safe. The owner's own hold is found and left as it is.
local holds, record, owner, lease, wanted, value = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include parts/owner.lua
--@include parts/lease.lua
--@include parts/permits.lua

if redis.call('EXISTS', KEYS[3]) == 1 then
  return -2
end
--@include parts/holds.lua
--@include parts/now.lua
local reply = redis.call('HMGET', record, 'permits', 'resized')
local agreed, resized = reply[1] or wanted, reply[2]
local taken = redis.call('ZCOUNT', holds, live, '+inf')
if agreed ~= wanted and not resized then
  if taken > 0 then
    return {tonumber(agreed)}
  end
  agreed = wanted -- nobody has a permit of the others any more
end
local ends = redis.call('ZSCORE', holds, owner)
if ends then
  return tonumber(ends) > now and 0 or -2
end
if taken >= tonumber(agreed) or taken > 0 and not reply[1] then -- a renewal restores the permit record
  local first = redis.call('ZRANGEBYSCORE', holds, live, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  local left, label = math.max(first[2] - now, 1), string.match(redis.call('HGET', record, first[1]) or '', '^%d+ (.+)$')
  return label and left .. ' ' .. label or left
end
local ended = redis.call('ZRANGEBYSCORE', holds, '-inf', string.format('%.0f', now), 'LIMIT', '0', '100')
local latest = math.max(now + lease, redis.call('ZRANGE', holds, '-1', '-1', 'WITHSCORES')[2] or 0)
for _, field in ipairs(any and {} or redis.call('HRANDFIELD', record, '1000')) do -- of owners that went with the sorted set
  if field ~= 'permits' and field ~= 'resized' and field ~= owner then
    ended[#ended + 1] = field
  end
end

local fields = {'permits', agreed, owner, value}
if resized then
  fields[5], fields[6] = 'resized', '1'
end
local set = redis.pcall('HSET', record, unpack(fields)) -- first: Redis refuses it when out of memory
if type(set) == 'table' then
  return set
end
local refused = redis.pcall('ZADD', holds, string.format('%.0f', now + lease), owner)
if type(refused) ~= 'table' then
  --@include parts/keep.lua
  refused = kept ~= 1 and kept
end
if refused then -- no permit without expiry must stay
  redis.call('ZREM', holds, owner)
  if reply[1] then
    redis.call('HDEL', record, owner)
  else
    redis.call('DEL', record)
  end
  return refused
end
if ended[1] then
  redis.pcall('ZREM', holds, unpack(ended))
  redis.pcall('HDEL', record, unpack(ended))
end
return 0
