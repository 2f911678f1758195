-- holds: reads `any` owner that is among the `holds`, nil if there is none. Refuses a sorted set that is not ours.
local any = redis.call('ZRANGE', holds, '0', '0')[1]
if any and not (string.find(any, '^%-....%-....%-....%-', 9) and string.find(any, '^:%-?%d+$', 37)) then
  return redis.error_reply('WRONGTYPE the key holds a sorted set that is not a semaphore')
end
