-- holder: reads the `holder` of `lock`, nil if it is free, and fields[2], what its field holds. Refuses what is not a lock.
local fields = redis.call('HRANDFIELD', lock, '2', 'WITHVALUES') -- not all: an application's hash may be large
local holder = fields[1]
if holder and (fields[3] or not string.find(holder, '^%-....%-....%-....%-', 9) or not string.find(holder, '^:%-?%d+$', 37)) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
