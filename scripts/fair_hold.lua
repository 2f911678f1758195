-- fair_hold: the part of those scripts that give a lock to somebody.

-- The server's clock in µs.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- mint reserves fence numbers for a hold, as acquire_fenced does. nil and why if it cannot.
local function mint(counter, expiry, numbers, now)
  local previous = redis.pcall('GET', counter)
  if type(previous) == 'table' then
    return nil, previous
  end
  local first = now
  if previous then
    if #previous > 16 or not string.find(previous, '^%d+$') or tonumber(previous) > 9e15 then
      return nil, redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
    end
    first = math.max(now, previous + 1)
  end
  local last = math.max(first, now + numbers - 1)
  if last > 9e15 then -- not kept: the clock may be set right
    return nil, redis.error_reply('ERR fence number must be at most 9000000000000000, the clock is beyond the year 2255')
  end
  last = string.format('%.0f', last)
  local set
  if expiry == '0' or (previous and redis.call('PTTL', counter) == -1) then
    set = redis.pcall('SET', counter, last)
  else
    set = redis.pcall('SET', counter, last, 'PX', expiry)
  end
  if set.err then
    return nil, set
  end
  return string.format('%.0f', first), last
end

-- hold makes owner the holder of a free lock. nil and why if Redis refuses; then the lock is free.
local function hold(lock, owner, lease)
  local set = redis.pcall('HSET', lock, owner, '1')
  if set == 1 then
    set = redis.pcall('PEXPIRE', lock, lease)
    if set == 1 then
      return true
    end
    redis.call('HDEL', lock, owner)
  end
  return nil, set
end
