-- fair_confirm: set the lease that an owner with a grant asked for, and reserve fence numbers. It works on a Redis that is out of memory.
-- ARGV[2]  owner
-- ARGV[3]  lease in ms from now, 1 to 999999999999999
-- ARGV[4]  the first fence number that came with the grant, or 0
-- ARGV[5]  the last one. If the counter still says so, the hold has these: others would be ahead of the clock by as many
-- Reply    a number; with fencing, if it is 1, {1, first, last}: the fence numbers reserved
--          1    the owner holds the lock, for that lease from now
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. Each run sets the lease from its own time. It reserves other, larger numbers unless those of the grant are good.
--@include parts/fair.lua
--@include parts/settings.lua
local lease = ARGV[3]
--@include parts/lease.lua
if not string.find(ARGV[4] .. ' ' .. ARGV[5], '^%d+ %d+$') then
  return redis.error_reply('ERR fence numbers of a grant must be whole numbers')
end

if call('HEXISTS', lock, ARGV[2]) == 0 then
  return call('HDEL', lock, ARGV[2]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
call('HDEL', lock, '') -- changes nothing. Behind it, Redis takes SET also when out of memory
local reply, reserve = 1, reserve ~= '0' and 1
if reserve and ARGV[4] ~= '0' and try('GET', counter) == ARGV[5] then
  reply, reserve = {1, tonumber(ARGV[4]), tonumber(ARGV[5])}, nil
end
--@include parts/reserve.lua
call('PEXPIRE', lock, lease)
return reply
