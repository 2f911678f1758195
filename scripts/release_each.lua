-- release_each: release for many locks, each for itself. No fence numbers are given back.
-- KEYS         the locks
-- ARGV[2*i-1]  for each lock, those of release: its owner
-- ARGV[2*i]    its channel
-- Reply        {answer...} with, for each lock:
--              text  the error with which Redis refused; nothing is changed
--              0     released; or more: so many subscribers were told
--              -1    the owner does not hold the lock; nothing is changed
--              -2    released; Redis refused the message
-- Repeat: safe, as release.
local reply = {}
for i, lock in ipairs(KEYS) do
  local ended = redis.pcall('HDEL', lock, ARGV[2 * i - 1])
  if type(ended) == 'table' then
    reply[i] = ended.err
  elseif ended == 0 then
    reply[i] = -1
  else
    local told = redis.pcall('PUBLISH', ARGV[2 * i], '0')
    reply[i] = type(told) == 'number' and told or -2
  end
end
return reply
