-- acquire_fenced: as acquire, and reserve fence numbers for the hold.
-- The numbers follow the server's clock in microseconds, so that they go on growing when the counter is lost: they run
-- ahead of it by no more than a reservation that was not given back.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the owner's tombstone, string
-- KEYS[3]  the fence counter, string: the last number reserved
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- ARGV[3]  numbers to reserve, 1 to 999999999
-- ARGV[4]  expiry of the counter in ms, 0 to 999999999999999; 0: none. A counter that has none keeps none (it is Java's).
-- Reply    {status, first, last} with status as in acquire; first and last are 0 if it is not 0:
--          0    the owner holds the lock, and the numbers from first to last are its own
--          > 0  held by another, whose lease ends in so many ms
--          -1   held by another, without expiry
--          -2   the owner has been given up by clean_up; nothing is changed
-- Repeat: safe. A repeat that finds its own field reserves other, larger numbers: nobody learned those of the lost reply.
if #ARGV[1] == 0 then
  return redis.error_reply('ERR owner must not be empty')
end
if #ARGV[2] > 15 or not string.find(ARGV[2], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end
if #ARGV[3] > 9 or not string.find(ARGV[3], '^[1-9]%d*$') then
  return redis.error_reply('ERR reserve must be a whole number from 1 to 999999999')
end
if #ARGV[4] > 15 or not string.find(ARGV[4], '^%d+$') then
  return redis.error_reply('ERR counter expiry must be a whole number of ms from 0 to 999999999999999')
end

local free = redis.call('EXISTS', KEYS[1], KEYS[2]) == 0
if not free then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    return {-2, 0, 0}
  end
  local fields = redis.call('HRANDFIELD', KEYS[1], '2') -- never all of them: what others keep there may be large
  if fields[2] or not string.find(fields[1], '^%-....%-....%-....%-', 9) or not string.find(fields[1], '^:%-?%d+$', 37) then
    return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
  end
  if fields[1] ~= ARGV[1] then
    local left = redis.call('PTTL', KEYS[1])
    if left ~= -1 then
      left = math.max(left, 1)
    end
    return {left, 0, 0}
  end
end

local previous = redis.call('GET', KEYS[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local first = now
if previous then
  -- Above 2^53 Lua's numbers no longer tell neighbours apart.
  if #previous > 16 or not string.find(previous, '^%d+$') or tonumber(previous) > 9e15 then
    return redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
  end
  first = math.max(now, previous + 1)
end
local last = math.max(first, now + ARGV[3] - 1)
if last > 9e15 then -- not kept: the clock may be set right
  return redis.error_reply('ERR fence number must be at most 9000000000000000, the clock is beyond the year 2255')
end

-- The counter first: it is what Redis refuses when out of memory, and a number that is skipped does no harm.
local text = string.format('%.0f', last)
if ARGV[4] == '0' or (previous and redis.call('PTTL', KEYS[3]) == -1) then
  redis.call('SET', KEYS[3], text)
else
  redis.call('SET', KEYS[3], text, 'PX', ARGV[4])
end

if free then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  local set = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if set ~= 1 then -- refused: a lock without expiry must not stay
    redis.call('HDEL', KEYS[1], ARGV[1])
    return set
  end
end
return {0, first, last}
