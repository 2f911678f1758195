-- semaphore_inspect: the permits of a key and who has them. Changes nothing.
-- KEYS[1]  the holds, sorted set owner -> Unix ms: when its lease ends
-- KEYS[2]  the permit record, hash
-- Reply    {permits, holder...}  how many there are, 0: not agreed; and for each that is taken, the first to end first: owner, its
--          entries, ms until its lease ends, label or empty
-- Repeat: safe.
local holds, record = KEYS[1], KEYS[2]
--@include parts/holds.lua
--@include parts/now.lua
local reply = {tonumber(redis.call('HGET', record, 'permits') or 0)}
local holders = redis.call('ZRANGEBYSCORE', holds, live, '+inf', 'WITHSCORES')
for i = 1, #holders, 2 do
  local entries, label = string.match((redis.call('HGET', record, holders[i]) or '1') .. ' ', '^(%d+) (.*)$')
  reply[#reply + 1] = holders[i]
  reply[#reply + 1] = tonumber(entries or 1)
  reply[#reply + 1] = math.max(holders[i + 1] - now, 1)
  reply[#reply + 1] = label and string.sub(label, 1, -2) or ''
end
return reply
