-- acquire_all: take several free locks together, or none; each for an owner that has never held it.
-- KEYS[2*i-1]  the i-th lock, hash owner -> entries and label
-- KEYS[2*i]    the tombstone of its owner, string
-- ARGV[1]      lease in ms, 1 to 999999999999999
-- ARGV[2]      what their fields hold: 1, and behind a space the label of the owners, if they have one
-- ARGV[i+2]    the owner of the i-th lock
-- Reply    0    the owners hold the locks: taken now, or found so (then nothing is changed)
--          > 0  the number of a lock that another holds, or whose owner has been given up by release; nothing is changed
-- Repeat: safe. The owners' own fields are found and left as they are, the expiries too.
local lease = ARGV[1]
--@include parts/lease.lua
if #KEYS ~= 2 * (#ARGV - 2) or #KEYS == 0 then
  return redis.error_reply('ERR owners must be as many as locks')
end

local free = {}
for i = 1, #ARGV - 2 do
  local lock, owner = KEYS[2 * i - 1], ARGV[i + 2]
  --@include parts/owner.lua
  if redis.call('EXISTS', lock, KEYS[2 * i]) == 0 then
    table.insert(free, {lock, owner})
  elseif redis.call('EXISTS', KEYS[2 * i]) == 1 then
    return i
  else
    --@include parts/holder.lua
    if holder ~= owner then
      return i
    end
  end
end
for n, hold in ipairs(free) do
  redis.call('HSET', hold[1], hold[2], ARGV[2])
  local set = redis.pcall('PEXPIRE', hold[1], lease)
  if set ~= 1 then -- refused: no lock without expiry must stay, nor only some of the locks
    for taken = 1, n do
      redis.call('HDEL', unpack(free[taken]))
    end
    return set
  end
end
return 0
