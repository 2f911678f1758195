-- recount: set the number of entries of a hold, as a nested entry begins or ends. The expiry stays as it is.
-- KEYS[1]  the lock, hash owner -> count and label
-- ARGV[1]  owner
-- ARGV[2]  the new number of entries, 1 to 999999999, and behind a space the label of the owner, if it has one
-- Reply    1    set
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. The count is given, not added to.
local entries = string.match(ARGV[2], '^([1-9]%d*)$') or string.match(ARGV[2], '^([1-9]%d*) .')
if not entries or #entries > 9 then
  return redis.error_reply('ERR entries must be a whole number from 1 to 999999999')
end

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
