-- holder: reads the `holder` of `lock`, nil if it is free. Refuses a key that is not a lock.
local fields = redis.call('HRANDFIELD', lock, '2') -- not all: an application's hash may be large
local holder = fields[1]
if holder and (fields[2] or not string.find(holder, '^%-....%-....%-....%-', 9) or not string.find(holder, '^:%-?%d+$', 37)) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
