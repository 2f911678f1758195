-- inspect: reads the `entries` of `holder`, its `label`, and `left`, the ms until its lease ends.
local entries, label = string.match(redis.call('HGET', lock, holder) .. ' ', '^(%d+) (.*)$')
if not entries or #entries > 9 then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
label = string.sub(label, 1, -2)
local left = redis.call('PTTL', lock)
if left ~= -1 then
  left = math.max(left, 1)
end
