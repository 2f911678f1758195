-- quorum_acquire: acquire on a node of a quorum, for many locks, each by itself. A refusal names the holder: many nodes held by
-- one owner are a lock, by many owners a split vote. With fencing it returns counter and clock: the quorum makes a fence number
-- from those of several nodes and writes it back by quorum_fence, so that the clock of one node spoils no counter.
-- KEYS     for each lock:
-- KEYS[1]  the lock, hash owner -> entries and label
-- KEYS[2]  the owner's tombstone, string
-- KEYS[3]  optional, with fencing: the fence counter, string: the last number reserved
-- KEYS[n]  the last key: the marker, string; it is read if the node has a restart guard
-- ARGV[1]  how many keys each lock has
-- ARGV     then for each lock, those of acquire: owner, lease and what the field holds
-- Reply    {-3}  the vote in this text is not valid; nothing is changed
--          {answer...} with, for each lock, an answer as acquire, but:
--          {0, counter, clock}  with fencing, held: the last number reserved, 0 if there is none, and the server's clock in µs
--          {left, holder}       held by another: ms until its lease ends, -1 if it has no end; if the other has a label, it follows
--                               left, behind a space
--          {text}               the error with which Redis refused; nothing is changed
-- Repeat: safe, as acquire.

-- The vote that this text stands for, see newVote in internal/wire/quorum.go; empty without a restart guard. So the SHA-1 of the text
-- belongs to one boot, one replication ID and one incarnation of a node. A server that restarted does not know the text; this check
-- finds the other changes.
local marker, replID = '', ''
if marker ~= '' and (redis.call('GET', KEYS[#KEYS]) ~= marker or not string.find(redis.call('INFO', 'replication'), replID, 1, true)) then
  return {-3}
end

local function acquire(KEYS, ARGV)
  --@include plain/acquire.lua
end

local function one(KEYS, ARGV)
  local counter = KEYS[3] and (redis.call('GET', KEYS[3]) or '0')
  -- Above 2^53, Lua cannot represent every whole number.
  if counter and (#counter > 16 or not string.find(counter, '^%d+$') or tonumber(counter) > 9e15) then
    return redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
  end
  local time = counter and redis.call('TIME')
  local answer = acquire(KEYS, ARGV)
  if type(answer) == 'string' or type(answer) == 'number' and (answer > 0 or answer == -1) then
    return {answer, redis.call('HRANDFIELD', KEYS[1], '1')[1]}
  end
  if answer == 0 and counter then
    return {0, tonumber(counter), time[1] * 1000000 + time[2]}
  end
  return answer
end
--@include parts/each.lua
