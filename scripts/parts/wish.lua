-- wish: refuses a `wish` that is not a number of ms from 0 to 60000.
if #wish > 5 or not string.find(wish, '^%d+$') or tonumber(wish) > 60000 then
  return redis.error_reply('ERR wish must be a whole number of ms from 0 to 60000')
end
