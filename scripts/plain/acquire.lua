-- acquire: take a free lock for an owner that has never held it; with fencing, reserve fence numbers for the hold.
-- The numbers follow the server's clock in microseconds, so they go on growing when the counter is lost: they run ahead of the
-- clock by no more than a reservation that was not given back.
-- KEYS[1]  the lock, hash owner -> entries and label
-- KEYS[2]  the owner's tombstone, string
-- KEYS[3]  with fencing: the fence counter, string: the last number reserved
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- ARGV[3]  what the field holds: 1, and behind a space the label of the owner, if it has one
-- ARGV[4]  with fencing: numbers to reserve, 1 to 999999999
-- ARGV[5]  with fencing: expiry of the counter in ms, 0 to 999999999999999; 0: none. A counter without expiry keeps none (it is
--          Java's).
-- Reply    0    the owner holds the lock: taken now, or found so (then nothing is changed)
--          {0, first, last}  the same with fencing; the numbers from first to last are its own
--          > 0  held by another: ms until its lease ends
--          -1   held by another, without expiry
--          text  either of the two, a space, and the label of the other
--          -2   the owner has been given up by release, which left a tombstone; nothing is changed
-- Repeat: safe. The owner's own field is found and left as it is, the expiry too. It reserves other, larger numbers then: no
-- holder got those of the lost reply.
local lock, counter, owner, lease, value, reserve, counter_expiry = KEYS[1], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--@include parts/owner.lua
--@include parts/lease.lua
--@include parts/numbers.lua

local free, reply = redis.call('EXISTS', lock, KEYS[2]) == 0, 0
if not free then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    return -2
  end
  --@include parts/holder.lua
  if holder ~= owner then
    --@include parts/held.lua
  end
end
--@include parts/reserve.lua
if free then
  --@include parts/take.lua
end
return reply
