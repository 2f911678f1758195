-- end_each: end holds, whatever their counts, each by itself.
-- KEYS[i]      the locks, hash owner -> count
-- KEYS[other]  after them, in the same order, one for each lock for which ARGV[3*i] needs it: its owner's tombstone, string, or
--              its fence counter, string
-- ARGV[3*i-2]  for each lock: the owner
-- ARGV[3*i-1]  the channel of the lock, on which waiters get the message 0; empty: none, for a failed round: if many ask at
--              once, those that fail would keep waking one another
-- ARGV[3*i]    empty      nothing more
--              tombstone  an unanswered acquire of the owner may still arrive: leave a tombstone for a minute, so that it takes
--                         nothing
--              a number   1 to 9999999999999999, the last fence number used: give back those reserved after it
-- Reply        {answer...} with, for each lock:
--              {text}  the error with which Redis refused; nothing is changed
--              >= 0    ended: the number of subscribers that were notified
--              -1      the owner does not hold the lock; nothing is changed, except for the tombstone
--              -2      ended; Redis refused the message
-- Repeat: safe. The second finds no field, and renews the tombstone.
-- Giving back is safe as in plain/release.lua.
for i = 1, #ARGV / 3 do
  local more = ARGV[3 * i]
  if not (more == '' or more == 'tombstone' or #more <= 16 and string.find(more, '^[1-9]%d*$')) then
    return redis.error_reply('ERR last fence must be a whole number from 1 to 9999999999999999')
  end
end

local count, reply = #ARGV / 3, {}
local other = count
for i = 1, count do
  local more = ARGV[3 * i]
  if more ~= '' then
    other = other + 1
  end
  local ended = redis.pcall('HDEL', KEYS[i], ARGV[3 * i - 2])
  if type(ended) == 'table' then
    reply[i] = {ended.err}
  else
    if more == 'tombstone' then
      redis.pcall('SET', KEYS[other], '1', 'PX', '60000')
    elseif more ~= '' and ended == 1 then
      local reserved = redis.pcall('GET', KEYS[other])
      if type(reserved) == 'string' and (tonumber(reserved) or 0) > tonumber(more) then
        redis.pcall('SET', KEYS[other], more, 'XX', 'KEEPTTL')
      end
    end
    local notified = ended == 1 and 0 or -1
    if ended == 1 and ARGV[3 * i - 1] ~= '' then
      notified = redis.pcall('PUBLISH', ARGV[3 * i - 1], '0')
    end
    reply[i] = type(notified) == 'number' and notified or -2
  end
end
return reply
