-- fair_acquire: take a lock that is free and that nobody waits for, for an owner that has never held it.
-- KEYS[6]  the owner's tombstone, string
-- ARGV[4]  owner
-- ARGV[5]  lease in ms, 1 to 999999999999999
-- Reply    {status, first, last}; first and last are the fence numbers reserved, 0 without fencing or if status is not 0:
--          0    the owner holds the lock: taken now, or found so
--          > 0  held by another, whose lease ends in so many ms; 1 if it is free and others are before
--          -1   held by another, without expiry
--          -2   the owner has been given up by fair_leave; nothing is changed
-- Repeat: safe. A repeat that finds its own field reserves other, larger numbers.
if not ours(ARGV[4]) then
  return redis.error_reply('ERR owner must be client:0number')
end
if #ARGV[5] > 15 or not string.find(ARGV[5], '^[1-9]%d*$') then
  return redis.error_reply('ERR lease must be a whole number of ms from 1 to 999999999999999')
end

local owner, found = ARGV[4], false
if call('EXISTS', lock, queue, KEYS[6]) > 0 then
  if call('EXISTS', KEYS[6]) == 1 then
    return {-2, 0, 0}
  end
  found = call('HEXISTS', lock, owner) == 1
  if not found then
    local left = call('PTTL', lock)
    if left ~= -2 then
      return {left == -1 and -1 or math.max(left, 1), 0, 0}
    end
    me = '' -- also a waiter of this client learns of its grant from its inbox
    if serve() ~= 'nobody' or call('EXISTS', queue) == 1 then
      return {1, 0, 0}
    end
  end
end

local first, last = mint(math.min(reserve, 1))
if not first then
  return last
end
if not found then
  local held, why = hold(owner, ARGV[5])
  if not held then
    return why
  end
end
return {0, tonumber(first), tonumber(last)}
