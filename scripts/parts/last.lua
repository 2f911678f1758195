-- last: refuses a `last` that is neither empty, nor tombstone, nor a number from 1 to 9999999999999999.
if not (last == '' or last == 'tombstone' or #last <= 16 and string.find(last, '^[1-9]%d*$')) then
  return redis.error_reply('ERR last fence must be a whole number from 1 to 9999999999999999')
end
