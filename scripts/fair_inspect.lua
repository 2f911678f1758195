-- fair_inspect: who holds a lock, and how many wait for it. Changes nothing.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the queue, list of owners
-- Reply    {waiting}                       it is free
--          {waiting, owner, entries, left}  held; its lease ends in left ms, -1: never
-- Repeat: safe.
local waiting = redis.call('LLEN', KEYS[2])
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 then
  return {waiting}
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
return {waiting, held[1], entries, left}
