-- rwlock_acquire: take a read/write lock for a reader or a writer that has never held it; with fencing, reserve fence numbers for the
-- hold. A reader may have it beside other readers, and beside a writer that is its own caller.
-- Each process that waits has a wish. While a writer has one, readers that come later are refused, and so are other writers whose
-- wish is younger. After the turn of a writer, the readers that waited during it are next: they go before other writers. Those
-- whose turn it is have a third of a wish to take a lock that is free: after that, whoever asks may have it.
-- KEYS[1]  the lock, hash: mode -> read or write, owner -> entries
-- KEYS[2]  the owner's tombstone, string
-- KEYS[3]  the owner's timeout key, string: 1, and behind a space the label of the owner, if it has one. It expires with the lease
-- KEYS[4]  the wishes, hash: writer client, reader client or next client -> Unix ms until which the wish of the client counts, a
--          space, and since when it has it; next is a reader that goes before other writers. free -> Unix ms until
--          which others are refused although the lock is free
-- KEYS[5]  the absent key, see parts/living.lua
-- KEYS[6]  with fencing: the fence counter, string: the last number reserved
-- ARGV[1]  owner; that of a writer ends with :write
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- ARGV[3]  what the timeout key holds
-- ARGV[4]  client of the owner
-- ARGV[5]  ms for which the client has a wish if this is refused, up to 60000; 0: it does not wait
-- ARGV[6]  the writer beside which a reader wants the lock, an owner; empty: none. Not with fencing: numbers that the writer gives back
--          would be the reader's, too
-- ARGV[7]  with fencing: numbers to reserve, 1 to 999999999
-- ARGV[8]  with fencing: expiry of the counter in ms, 0 to 999999999999999; 0: none. A counter without expiry keeps none (it is
--          Java's).
-- Reply    0    the owner holds the lock: taken now, or found so (then nothing is changed)
--          {0, first, last}  the same with fencing; the numbers from first to last are its own
--          > 0  held by another: ms until that ends
--          -1   held by another, without expiry
--          text  either of the two, a space, and the label of the other; without a label, others go first
--          -2   the owner has been given up by release, which left a tombstone, or ARGV[6] does not hold the lock; nothing is changed
-- Repeat: safe. The owner's own hold is found and left as it is, the expiry too. It reserves other, larger numbers then: no
-- holder got those of the lost reply.
local lock, timeout, wishes, absent, counter = KEYS[1], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local owner, lease, client, wish, reserve, counter_expiry = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[7], ARGV[8]
--@include parts/owner.lua
--@include parts/lease.lua
--@include parts/numbers.lua
--@include parts/wish.lua
if reserve and ARGV[6] ~= '' then
  return redis.error_reply('ERR fencing: a reader beside a writer has the fence of that one')
end

if redis.call('EXISTS', KEYS[2]) == 1 then
  return -2
end
local leaver
--@include parts/living.lua
local writes, reply = string.sub(owner, -6) == ':write', 0
local found = mode and redis.call('HEXISTS', lock, owner) == 1
local beside = mode == 'write' and not writes and (found or ARGV[6] ~= '' and redis.call('HEXISTS', lock, ARGV[6]) == 1)
if ARGV[6] ~= '' and not found and not beside then
  redis.call('HDEL', lock, '') -- changes nothing, but is refused by a replica, which may not know of the writer yet
  return -2
end
local wished = {}
if not found and not beside then
  --@include parts/now.lua
  wished = redis.call('HGETALL', wishes)
  local first, since, until_writers, until_next, ours_next = math.huge, now, 0, 0, false
  local free
  for i = 1, #wished, 2 do
    --@include parts/wished.lua
    if wished[i] == 'free' then
      free = tonumber(wished[i + 1])
    elseif not counts then
      redis.call('HDEL', wishes, wished[i])
      wished[i] = ''
    elseif who == 'writer' then
      began = math.min(began, now) -- otherwise the clock has jumped back
      until_writers, first = math.max(until_writers, ends), math.min(first, began)
      if of == client then
        since = began
      end
    elseif who == 'next' then
      until_next, ours_next = math.max(until_next, ends), ours_next or of == client
    end
  end
  local answer, others = nil, true
  if mode == 'write' or mode and writes then
    --@include parts/label.lua
    answer, others = label and left .. ' ' .. label or left, false
  elseif writes and until_next > 0 then
    answer = until_next - now
  elseif until_writers > 0 and (writes and first < since or not writes and not ours_next) then
    answer = until_writers - now
  end
  local over = free and not mode and free <= now
  if free and (over or mode or not answer or free - now > 60000) then
    redis.call('HDEL', wishes, 'free')
    free = nil
  end
  if over then
    answer = nil
  elseif answer and not mode then
    if not free and wish ~= '0' then
      free = now + math.ceil(wish / 3)
      redis.pcall('HSET', wishes, 'free', free)
    end
    answer = free and math.min(answer, free - now) or answer
  end
  if answer then
    if wish ~= '0' then
      local who = (writes and 'writer ' or ours_next and 'next ' or 'reader ') .. client
      --@include parts/note_wish.lua
    end
    return others and answer .. ' ' or answer
  end
end
--@include parts/reserve.lua
if not found then
  local lasts, longest = mode and redis.call('PTTL', lock) or 0, math.max(left, tonumber(lease))
  if mode then
    redis.call('HSET', lock, owner, '1')
  else
    redis.call('HSET', lock, 'mode', writes and 'write' or 'read', owner, '1')
  end
  local set = redis.pcall('SET', timeout, ARGV[3], 'PX', lease)
  if not set.err and lasts ~= -1 and lasts < longest then
    set = redis.pcall('PEXPIRE', lock, longest)
    if set == 0 then -- on a server that lets its clock run on during a script
      set = redis.error_reply('TRYAGAIN the last lease has just ended')
    end
  end
  if type(set) == 'table' and set.err then -- a lock without expiry must not stay
    redis.pcall('DEL', timeout)
    redis.call('HDEL', lock, owner, mode and owner or 'mode')
    return set
  end
  if writes and #wished > 0 then -- its turn may end without a release
    --@include parts/promote.lua
    redis.pcall('HDEL', wishes, 'writer ' .. client)
  elseif #wished > 0 then
    redis.pcall('HDEL', wishes, 'reader ' .. client, 'next ' .. client)
  end
end
return reply
