-- renew: extend the expiry of many locks, each only while its owner holds it. Each by itself: one that Redis refuses
-- costs the others nothing.
-- KEYS[i]    a lock, hash owner -> entries
-- ARGV[1]    lease in ms from now, 1 to 999999999999999
-- ARGV[i+1]  the owner of KEYS[i]
-- Reply      1    all were renewed; otherwise an array with, for each lock:
--            1    renewed
--            0    the owner does not hold the lock; nothing is changed
--            text the error with which Redis refused; nothing is changed
-- Repeat: safe. The expiry counts from each execution.
local call, lease = redis.pcall, ARGV[1]
--@include parts/lease.lua
if #ARGV ~= #KEYS + 1 then
  return redis.error_reply('ERR owners must be as many as locks')
end

local answers, renewed = {}, 0
for i = 1, #KEYS do
  local lock = KEYS[i]
  local answer = call('HEXISTS', lock, ARGV[i + 1])
  if answer == 1 then
    answer = call('PEXPIRE', lock, lease)
  elseif answer == 0 then
    answer = call('HDEL', lock, ARGV[i + 1]) -- changes nothing, but is refused by a replica, which may not know of the hold yet
  end
  --@include parts/answered.lua
end
return renewed == #answers and 1 or answers
