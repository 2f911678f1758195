-- quorum_renew: as renew, and return the marker: a lock counts only on a node that still has the vote by which it gave it.
-- KEYS[i]     a lock, hash owner -> entries and label
-- KEYS[n]     the last key, the marker, string
-- ARGV[1]     lease in ms from now, 1 to 999999999999999
-- ARGV[2*i]   the owner of KEYS[i]
-- ARGV[2*i+1] what the field should hold, as for set_entries, 0 to leave it as it is: the node may have missed a nested entry
-- Reply       {marker, answer...} with, for each lock:
--             1    renewed
--             0    the owner does not hold the lock; nothing is changed
--             text the error with which Redis refused; nothing is changed
-- Repeat: safe. The expiry counts from each execution.
local try, lease = redis.pcall, ARGV[1]
--@include parts/lease.lua
if #ARGV ~= 2 * #KEYS - 1 then
  return redis.error_reply('ERR owners must be as many as locks')
end

local reply = {redis.call('GET', KEYS[#KEYS]) or ''}
for i = 1, #KEYS - 1 do
  local lock, owner, value = KEYS[i], ARGV[2 * i], ARGV[2 * i + 1]
  local present = try('HGET', lock, owner)
  local answer = present
  if type(present) == 'string' then
    answer = try('PEXPIRE', lock, lease)
    if answer == 1 and value ~= '0' and value ~= present then
      try('HSET', lock, owner, value)
    end
  end
  if type(answer) == 'table' then
    answer = answer.err
  end
  reply[i + 1] = answer or 0
end
return reply
