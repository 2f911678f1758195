-- release: end the owner's hold with all its entries, and notify the lock's channel.
-- KEYS[1]  the lock, hash owner -> entries
-- KEYS[2]  with ARGV[3], what that needs: the owner's tombstone, string, or the fence counter, string; otherwise the lock again
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock; the message is 0. Empty: none, for a failed round: if many ask at once, those that fail would
--          keep waking one another
-- ARGV[3]  optional:
--          empty      nothing more, as without it
--          tombstone  an unanswered acquire of the owner may still arrive: leave a tombstone for a minute, so that it takes nothing
--          a number   1 to 9999999999999999, the last fence number used: give back those reserved after it
-- Reply    >= 0  released: the number of subscribers that were notified; 0 if Redis refused the message
--          -1    the owner does not hold the lock; nothing is changed, except for the tombstone
-- Repeat: safe. The second finds no field, and renews the tombstone.
local last = ARGV[3] or ''
--@include parts/last.lua

local held = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
if last == 'tombstone' then
  redis.pcall('SET', KEYS[2], '1', 'PX', '60000')
elseif last ~= '' and held then
  local counter = KEYS[2]
  --@include parts/give_back.lua
end
if not held then
  return -1
end
local notified = ARGV[2] == '' and 0 or redis.pcall('PUBLISH', ARGV[2], '0')
return type(notified) == 'number' and notified or 0
