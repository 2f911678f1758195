-- rwlock_renew: extend the expiry of many holds of read/write locks, each only while its field and its timeout key are there. Each
-- hold by itself: one that Redis refuses costs the others nothing. The expiry of a lock is that of its last hold.
-- KEYS[2*i-1]  a lock, hash: mode -> read or write, owner -> entries
-- KEYS[2*i]    the timeout key of its owner, string
-- ARGV[1]      lease in ms from now, 1 to 999999999999999
-- ARGV[i+1]    the owner
-- Reply      1    all were renewed; otherwise an array with, for each hold:
--            1    renewed
--            0    the owner does not hold the lock; nothing is changed
--            text the error with which Redis refused; the lock is as it was
-- Repeat: safe. The expiry counts from each execution.
local call, lease = redis.pcall, ARGV[1]
--@include parts/lease.lua
if #KEYS ~= 2 * (#ARGV - 1) then
  return redis.error_reply('ERR owners must be as many as locks')
end

local answers, renewed = {}, 0
for i = 1, #ARGV - 1 do
  local lock = KEYS[2 * i - 1]
  local answer = call('HEXISTS', lock, ARGV[i + 1])
  local left = answer == 1 and call('PTTL', lock)
  if type(left) == 'table' then
    answer = left
  elseif answer == 1 then
    answer = call('PEXPIRE', KEYS[2 * i], lease)
    if answer == 1 and left ~= -1 and left < tonumber(lease) then
      answer = call('PEXPIRE', lock, lease)
    end
  elseif answer == 0 then
    answer = call('HDEL', lock, ARGV[i + 1]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
  end
  --@include parts/answered.lua
end
return renewed == #answers and 1 or answers
