-- inspect: the holder of a lock, and the length of its queue. Changes nothing.
-- KEYS[1]  the lock, hash owner -> entries
-- KEYS[2]  optional, of a fair lock: the queue, list of owners
-- Reply    {waiting}                       it is free
--          {waiting, owner, entries, left, label}  held; its lease ends in left ms, -1: never; label: of the owner, or empty
-- Repeat: safe.
local lock, waiting = KEYS[1], KEYS[2] and redis.call('LLEN', KEYS[2]) or 0
--@include parts/holder.lua
if not holder then
  return {waiting}
end
local entries, label = string.match(redis.call('HGET', lock, holder) .. ' ', '^(%d+) (.*)$')
if not entries or #entries > 9 then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
end
local left = redis.call('PTTL', lock)
return {waiting, holder, tonumber(entries), left == -1 and left or math.max(left, 1), string.sub(label, 1, -2)}
