-- fair_confirm: set the lease that an owner with a grant asked for, and reserve fence numbers. It works on a Redis that is out of memory.
-- ARGV[2]  owner
-- ARGV[3]  lease in ms from now, 1 to 999999999999999
-- ARGV[4]  the first fence number that came with the grant, or 0. The hold gets it, and those reserved behind it are given back:
--          others would be ahead of the clock by as many
-- Reply    a number; with fencing, if it is 1, {1, first, last}: the fence numbers reserved
--          1    the owner holds the lock, for that lease from now
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. Each run sets the lease from its own time, and reserves other, larger numbers if none came with the grant.
--@include parts/fair.lua
--@include parts/settings.lua
local lease, first = ARGV[3], ARGV[4]
--@include parts/lease.lua
if #first > 16 or not string.find(first, '^%d+$') then
  return redis.error_reply('ERR first fence must be a whole number from 0 to 9999999999999999')
end

if call('HEXISTS', lock, ARGV[2]) == 0 then
  return call('HDEL', lock, ARGV[2]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
end
call('HDEL', lock, '') -- changes nothing. Behind it, Redis takes SET also when out of memory
local reply, reserve = 1, reserve ~= '0' and 1
if reserve and first ~= '0' then
  local last = first
  --@include parts/give_back.lua
  reply, reserve = {1, tonumber(first), tonumber(first)}, nil
end
--@include parts/reserve.lua
call('PEXPIRE', lock, lease)
return reply
