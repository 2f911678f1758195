-- permits: refuses a `wanted` that is not a number of permits from 1 to 10000.
if #wanted > 5 or not string.find(wanted, '^[1-9]%d*$') or tonumber(wanted) > 10000 then
  return redis.error_reply('ERR permits must be a whole number from 1 to 10000')
end
