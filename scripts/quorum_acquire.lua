-- quorum_acquire: as acquire, and tell what a fence number is made of. It comes before as a function named take. A quorum
-- makes the number, of what several nodes tell, and writes it back by quorum_fence: so the clock of one node spoils no counter.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the owner's tombstone, string
-- KEYS[3]  the fence counter, string: the last number reserved
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, 1 to 999999999999999
-- Reply    as acquire; but where that is 0, {0, counter, clock}: the last number reserved, 0 if there is none, and the server's
--          clock in microseconds
-- Repeat: safe, as acquire.
local counter = redis.call('GET', KEYS[3]) or '0'
-- Above 2^53 Lua's numbers no longer tell neighbours apart.
if #counter > 16 or not string.find(counter, '^%d+$') or tonumber(counter) > 9e15 then
  return redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
end
local time = redis.call('TIME')

local status = take(KEYS, ARGV)
if status ~= 0 then
  return status
end
return {0, tonumber(counter), time[1] * 1000000 + time[2]}
