-- fair_inspect: the holder of a lock, and the length of its queue. Changes nothing.
-- KEYS[1]  the lock, hash owner -> entries
-- KEYS[2]  the queue, list of owners
-- Reply    {waiting}                       it is free
--          {waiting, owner, entries, left, label}  held; its lease ends in left ms, -1: never; label: of the owner, or empty
-- Repeat: safe.
local lock = KEYS[1]
local waiting = redis.call('LLEN', KEYS[2])
--@include parts/holder.lua
if not holder then
  return {waiting}
end
--@include parts/inspect.lua
return {waiting, holder, tonumber(entries), left, label}
