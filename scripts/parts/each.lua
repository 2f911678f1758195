-- each: one(KEYS, ARGV) for many locks. Each runs by itself: one that Redis refuses costs the others nothing.
-- KEYS     for each lock, those of one
-- ARGV[1]  how many keys each lock has, 1 to 9
-- ARGV     then for each lock, those of one
-- Reply    {answer...} with, for each lock:
--          {text}  the error with which Redis refused; nothing is changed
--          else    as one
if not string.find(ARGV[1], '^[1-9]$') or #KEYS < tonumber(ARGV[1]) then
  return redis.error_reply('ERR count of keys must be a whole number from 1 to 9')
end

local keys, replies = tonumber(ARGV[1]), {}
local count = math.floor(#KEYS / keys)
local args = (#ARGV - 1) / count
for i = 1, count do
  local fine, answer = pcall(one, {unpack(KEYS, (i - 1) * keys + 1, i * keys)}, {unpack(ARGV, (i - 1) * args + 2, i * args + 1)})
  if type(answer) == 'table' and answer.err then
    answer = {answer.err}
  elseif not fine then -- an error that is a text; a grant is a text as well
    answer = {answer}
  end
  replies[i] = answer
end
return replies
