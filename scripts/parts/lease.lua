-- lease: refuses a `lease` that is not a number of ms from 1 to 999999999999999.
if #lease > 15 or not string.find(lease, '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end
