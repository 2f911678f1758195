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
local all_keys, all_args = KEYS, ARGV
local its_keys, its_args = {}, {} -- filled again for each lock, which is quicker than new ones
for i = 1, count do
  for j = 1, keys do
    its_keys[j] = all_keys[(i - 1) * keys + j]
  end
  for j = 1, args do
    its_args[j] = all_args[(i - 1) * args + 1 + j]
  end
  local fine, answer = pcall(one, its_keys, its_args)
  if type(answer) == 'table' and answer.err then
    answer = {answer.err}
  elseif not fine then -- an error that is a text; a grant is a text as well
    answer = {answer}
  end
  replies[i] = answer
end
return replies
