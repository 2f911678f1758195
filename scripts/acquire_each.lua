-- acquire_each: acquire or acquire_fenced for many locks, each for itself. They come before as a function of that name. Of
-- a quorum, a client that is refused has to know by whom: many nodes held by one owner are a lock, by many a split vote.
-- KEYS     for each lock, those of acquire
-- ARGV[1]  how many locks, 1 to 999
-- ARGV     then for each lock, those of acquire
-- Reply    {answer...} with, for each lock:
--          {left, holder}  held by another: ms until its lease ends, -1 if it has no end
--          text            the error with which Redis refused; nothing is changed
--          else            as acquire
-- Repeat: safe, as acquire.
if #ARGV[1] > 3 or not string.find(ARGV[1], '^[1-9]%d*$') then
  return redis.error_reply('ERR count must be a whole number from 1 to 999')
end

local count = tonumber(ARGV[1])
local keys, args = math.floor(#KEYS / count), (#ARGV - 1) / count -- a marker behind the keys of one lock does it no harm
local reply = {}
for i = 1, count do
  local names = {unpack(KEYS, (i - 1) * keys + 1, i * keys)}
  local _, answer = pcall(acquire, names, {unpack(ARGV, (i - 1) * args + 2, i * args + 1)})
  local status = type(answer) == 'table' and answer[1] or answer
  if type(status) == 'number' and (status > 0 or status == -1) then
    answer = {status, redis.call('HRANDFIELD', names[1], '2')[1]}
  end
  reply[i] = type(answer) == 'table' and answer.err or answer
end
return reply
