-- fair_each: fair_acquire, fair_release or fair_leave for many locks, each for itself. It comes before as the function one.
-- KEYS     for each lock, those of one call
-- ARGV[1]  how many locks, 1 to 999
-- ARGV[2]  the settings, see fair_settings
-- ARGV     then for each lock, the others of one call
-- Reply    {answer...} with, for each lock:
--          {text}  the error with which Redis refused; nothing is changed
--          else    as one call
-- Repeat: safe, as one call.
if #ARGV[1] > 3 or not string.find(ARGV[1], '^[1-9]%d*$') then
  return redis.error_reply('ERR count must be a whole number from 1 to 999')
end

local count = tonumber(ARGV[1])
local keys, args = #KEYS / count, (#ARGV - 2) / count
local reply = {}
for i = 1, count do
  local names = {unpack(KEYS, (i - 1) * keys + 1, i * keys)}
  local done, answer = pcall(one, names, {ARGV[2], unpack(ARGV, (i - 1) * args + 3, i * args + 2)})
  if type(answer) == 'table' and answer.err then
    answer = {answer.err}
  elseif not done then -- an error that was raised is a text here, as a grant is
    answer = {answer}
  end
  reply[i] = answer
end
return reply
