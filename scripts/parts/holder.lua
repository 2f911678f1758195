-- holder: who holds `lock`: `holder`, nil if it is free. What is no lock is refused.
local fields = redis.call('HRANDFIELD', lock, '2') -- never all of them: what others keep there may be large
local holder = fields[1]
if holder and (fields[2] or not string.find(holder, '^%-....%-....%-....%-', 9) or not string.find(holder, '^:%-?%d+$', 37)) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
