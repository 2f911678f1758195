-- fair_confirm: set the lease of an owner that was granted the lock to what it asked for, and reserve fence numbers.
-- ARGV[4]  owner
-- ARGV[5]  lease in ms from now, 1 to 999999999999999
-- Reply    {ours, first, last}; first and last are the fence numbers reserved, 0 without fencing:
--          1    the owner holds the lock, for that lease from now
--          0    the owner does not hold the lock; nothing is changed
-- Repeat: safe. A repeat sets the lease from its own execution and reserves other, larger numbers.
if #ARGV[5] > 15 or not string.find(ARGV[5], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end

if call('HEXISTS', lock, ARGV[4]) == 0 then
  return {0, 0, 0}
end
local first, last = mint(math.min(reserve, 1))
if not first then
  return last
end
call('PEXPIRE', lock, ARGV[5])
return {1, tonumber(first), tonumber(last)}
