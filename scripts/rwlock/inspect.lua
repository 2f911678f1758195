-- rwlock_inspect: who holds a read/write lock. Changes nothing except what is dead.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the absent key, see parts/living.lua
-- Reply    {}                      it is free
--          {mode, readers, owner, entries, left, label}  held by so many readers, and in mode write by a writer; owner: the writer, or
--          else a reader, with its entries and label; left: ms until the last hold ends, -1: never
-- Repeat: safe.
local lock, absent = KEYS[1], KEYS[2]
local leaver
--@include parts/living.lua
if not mode then
  return {}
end
--@include parts/label.lua
return {mode, readers, holder, tonumber(entries), left, label or ''}
