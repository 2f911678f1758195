-- mint reserves numbers for a new hold and keeps the last of them in the counter. Returns the first and the last, or nil
-- and the error.
local function mint(counter, expiry, numbers, now)
  local previous = redis.pcall('GET', counter)
  if type(previous) == 'table' then
    return nil, previous
  end
  local first = now
  if previous then
    -- Above 2^53, Lua cannot represent every whole number.
    if #previous > 16 or not string.find(previous, '^%d+$') or tonumber(previous) > 9e15 then
      return nil, redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
    end
    first = math.max(now, previous + 1)
  end
  local last = math.max(first, now + numbers - 1)
  if last > 9e15 then -- not kept: the clock may be set right
    return nil, redis.error_reply('ERR fence number must be at most 9000000000000000, the clock is beyond the year 2255')
  end
  local set
  if expiry == '0' or (previous and redis.call('PTTL', counter) == -1) then
    set = redis.pcall('SET', counter, string.format('%.0f', last))
  else
    set = redis.pcall('SET', counter, string.format('%.0f', last), 'PX', expiry)
  end
  if set.err then
    return nil, set
  end
  return first, last
end
