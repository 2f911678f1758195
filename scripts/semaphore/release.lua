-- semaphore_release: give back the owner's permit, and notify the channel of the key. It works on a Redis that is out of memory.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash. It goes with the last permit, unless an operator has set their number
-- KEYS[3]  what ARGV[3] needs: the owner's tombstone, string; otherwise the holds again
-- ARGV[1]  owner
-- ARGV[2]  channel of the key; the message is 0
-- ARGV[3]  empty      nothing more
--          tombstone  an unanswered acquire of the owner may still arrive: leave a tombstone for a minute, so that it takes nothing
-- Reply    >= 0  given back: the number of subscribers that were notified; 0 if Redis refused the message
--          -1    the owner has no permit; if its lease has ended, what is left of it is removed
-- Repeat: safe. The second finds no hold, and renews the tombstone.
local holds, record, owner = KEYS[1], KEYS[2], ARGV[1]
if ARGV[3] ~= '' and ARGV[3] ~= 'tombstone' then
  return redis.error_reply('ERR the third argument must be empty or tombstone')
end

--@include parts/now.lua
local ends = redis.call('ZSCORE', holds, owner)
redis.call('ZREM', holds, owner)
if ARGV[3] == 'tombstone' then
  redis.pcall('SET', KEYS[3], '1', 'PX', '60000')
end
if not ends then
  return -1
end
if redis.pcall('ZCOUNT', holds, live, '+inf') ~= 0 or redis.pcall('HEXISTS', record, 'resized') ~= 0 then
  redis.pcall('HDEL', record, owner)
else -- what is left has ended
  redis.pcall('DEL', holds, record)
end
if tonumber(ends) <= now then
  return -1
end
local notified = redis.pcall('PUBLISH', ARGV[2], '0')
return type(notified) == 'number' and notified or 0
