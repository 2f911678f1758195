-- inspect: who holds a lock. Changes nothing.
-- KEYS[1]  the lock, hash owner -> count
-- Reply    {}                      it is free
--          {owner, entries, left}  held; its lease ends in left ms, -1: never
-- Repeat: safe.
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 then
  return {}
end
local held = fields == 1 and redis.call('HGETALL', KEYS[1])
local entries = held and tonumber(held[2])
if not entries then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
local left = redis.call('PTTL', KEYS[1])
if left ~= -1 then
  left = math.max(left, 1)
end
return {held[1], entries, left}
