-- inspect: reads the `entries` of `holder`, and `left`, the ms until its lease ends.
local entries = redis.call('HGET', lock, holder)
if #entries > 9 or not string.find(entries, '^%d+$') then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
local left = redis.call('PTTL', lock)
if left ~= -1 then
  left = math.max(left, 1)
end
