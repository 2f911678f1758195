-- entries: refuses a `value` that is not a number of entries, 1 to 999999999, and behind a space a label, if there is one.
local entries = string.match(value, '^([1-9]%d*)$') or string.match(value, '^([1-9]%d*) .')
if not entries or #entries > 9 then
  return redis.error_reply('ERR entries must be a whole number from 1 to 999999999')
end
