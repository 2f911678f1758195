-- fair_confirm: set the lease of an owner that was granted the lock to what it asked for, and reserve fence numbers.
-- ARGV[2]  owner
-- ARGV[3]  lease in ms from now, 1 to 999999999999999
-- Reply    {ours, first, last}; first and last are the fence numbers reserved, 0 without fencing:
--          1    the owner holds the lock, for that lease from now
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. A repeat sets the lease from its own execution and reserves other, larger numbers.
if #ARGV[3] > 15 or not string.find(ARGV[3], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end

if call('HEXISTS', lock, ARGV[2]) == 0 then
  return {0, 0, 0}
end
local first, last = '0', '0'
if reserve ~= '0' then
  first, last = mint(counter, counter_expiry, 1, clock())
  if not first then
    return last
  end
end
call('PEXPIRE', lock, ARGV[3])
return {1, tonumber(first), tonumber(last)}
