-- release_each: release or clean_up for many locks, each for itself. No fence numbers are given back.
-- KEYS[i]        the locks
-- KEYS[count+i]  optional, for clean_up: as many tombstones, of their owners
-- ARGV[2*i-1]    for each lock, those of release: its owner
-- ARGV[2*i]      its channel
-- Reply          {answer...} with, for each lock:
--                text  the error with which Redis refused; nothing is changed
--                0     released; or more: so many subscribers were told
--                -1    the owner does not hold the lock; nothing is changed, but for the tombstone
--                -2    released; Redis refused the message
-- Repeat: safe, as release and clean_up.
local reply, count = {}, #ARGV / 2
for i = 1, count do
  local ended = redis.pcall('HDEL', KEYS[i], ARGV[2 * i - 1])
  if type(ended) == 'table' then
    reply[i] = ended.err
  else
    if KEYS[count + i] then
      redis.pcall('SET', KEYS[count + i], '1', 'PX', '60000')
    end
    local told = ended == 0 and -1 or redis.pcall('PUBLISH', ARGV[2 * i], '0')
    reply[i] = type(told) == 'number' and told or -2
  end
end
return reply
