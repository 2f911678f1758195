-- numbers: with fencing, refuses a `reserve` that is not a number from 1 to 999999999, and a `counter_expiry` that is not one of ms.
if reserve and (#reserve > 9 or not string.find(reserve, '^[1-9]%d*$')) then
  return redis.error_reply('ERR reserve must be a whole number from 1 to 999999999')
end
if reserve and (#counter_expiry > 15 or not string.find(counter_expiry, '^%d+$')) then
  return redis.error_reply('ERR counter expiry must be a whole number of ms from 0 to 999999999999999')
end
