-- owner: refuses an empty `owner`.
if #owner == 0 then
  return redis.error_reply('ERR owner must not be empty')
end
