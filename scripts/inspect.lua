-- inspect: who holds a lock. Changes nothing.
-- KEYS[1]  the lock, hash owner -> count
-- Reply    {}                      it is free
--          {owner, entries, left}  held; its lease ends in left ms, -1: never
-- Repeat: safe.
local fields = redis.call('HRANDFIELD', KEYS[1], '2') -- never all of them: what others keep there may be large
if not fields[1] then
  return {}
end
local entries = not fields[2] and redis.call('HGET', KEYS[1], fields[1])
if not entries or #entries > 9 or not string.find(entries, '^%d+$')
  or not string.find(fields[1], '^%-....%-....%-....%-', 9) or not string.find(fields[1], '^:%-?%d+$', 37) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
local left = redis.call('PTTL', KEYS[1])
if left ~= -1 then
  left = math.max(left, 1)
end
return {fields[1], tonumber(entries), left}
