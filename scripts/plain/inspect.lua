-- inspect: the holder of a lock. Changes nothing.
-- KEYS[1]  the lock, hash owner -> entries
-- Reply    {}                      it is free
--          {owner, entries, left, label}  held; its lease ends in left ms, -1: never; label: of the owner, or empty
-- Repeat: safe.
local lock = KEYS[1]
--@include parts/holder.lua
if not holder then
  return {}
end
--@include parts/inspect.lua
return {holder, tonumber(entries), left, label}
