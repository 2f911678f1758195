-- rwlock_release: end the owner's hold of a read/write lock with all its entries, and wake those who may take the lock now.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the owner's timeout key, string
-- KEYS[3]  the wishes, hash, see rwlock/acquire.lua
-- KEYS[4]  the absent key, see parts/living.lua
-- KEYS[5]  what ARGV[3] needs: the owner's tombstone, string, or the fence counter, string; otherwise the lock again
-- ARGV[1]  owner; that of a writer ends with :write
-- ARGV[2]  channel of the lock; the message is 0 if the last reader leaves, and 1 if a writer does
-- ARGV[3]  empty      nothing more
--          tombstone  an unanswered acquire of the owner may still arrive: leave a tombstone for a minute, so that it takes nothing
--          a number   1 to 9999999999999999, the last fence number used: give back those reserved after it
-- ARGV[4]  client of the owner
-- ARGV[5]  ms for which other writers of the client have a wish from now on, up to 60000; 0: none waits
-- Reply    >= 0  released: the number of subscribers that were notified; 0 if Redis refused the message
--          -1    the owner does not hold the lock; nothing is changed, except for the tombstone and what is dead
-- Repeat: safe. The second finds no hold, and renews the tombstone.
local lock, wishes, absent, last, wish = KEYS[1], KEYS[3], KEYS[4], ARGV[3], ARGV[5]
--@include parts/last.lua
--@include parts/wish.lua

--@include parts/now.lua
local leaver, removed = ARGV[1], redis.call('HEXISTS', lock, ARGV[1]) == 1
local held = removed and redis.call('EXISTS', KEYS[2]) == 1
--@include parts/living.lua
if not removed then
  redis.call('HDEL', lock, leaver) -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
redis.pcall('DEL', KEYS[2]) -- refused: it expires
if last == 'tombstone' then
  redis.pcall('SET', KEYS[5], '1', 'PX', '60000')
elseif last ~= '' and held then
  local counter = KEYS[5]
  --@include parts/give_back.lua
end
local writes, notified = string.sub(leaver, -6) == ':write', 0
if removed and writes then -- as far as Redis lets it: only fairness depends on that
  local who, wished = 'writer ' .. ARGV[4], redis.pcall('HGETALL', wishes)
  --@include parts/promote.lua
  if wish ~= '0' then
    local since = now
    --@include parts/note_wish.lua
  elseif #wished > 0 then
    redis.pcall('HDEL', wishes, who)
  end
end
if removed and (writes or not mode) then
  notified = redis.pcall('PUBLISH', ARGV[2], writes and '1' or '0')
end
return not held and -1 or type(notified) == 'number' and notified or 0
