-- fair_enter: put one or several owners of one client into the queue, each for the first time. If the lock is free, the first
-- live waiter gets it.
-- KEYS[i+4]  the tombstone of the owner ARGV[i], string
-- ARGV[2]    an owner, of the caller
-- ARGV[i]    another, for i from 3 on
-- Reply    >= 0  the most common: place, for {0, 30000, '', place, 1...}
--          {java, ahead, grant, place, state...}
--          java: 1 if Java holds the lock or waits in front, so that its release may wake an owner by the owner's own
--          channel; 2 if a heartbeat should follow soon: a Java waiter has the turn, or too many waiters were dead; else 0
--          ahead: ms by which the new scores lie ahead of the server's clock; fair_heartbeat has to keep them so
--          grant: that of a waiter of this client to which this call gave the lock, as serve returns it; else ''
--          place: that of the last owner that waits, where the next waiter has 1 and those of this call stand in a row; 0 if some
--          of them entered with an earlier sending of this call
--          a state for each owner:
--          1   it waits, or this call gave it the lock
--          0   it holds the lock, since an earlier sending of this call
--          -2  it has been given up by fair_leave; nothing is changed for it
-- Repeat: safe. An owner that already waits keeps its place.
--@include parts/fair.lua
--@include parts/settings.lua
if #KEYS < 6 or #KEYS - 5 ~= #ARGV - 1 then
  return redis.error_reply('ERR tombstones must be as many as owners')
end
local me, start = string.sub(ARGV[2], 1, 36), string.sub(ARGV[2], 1, 38)
local wrong = string.sub(start, 37) ~= ':0'
for i = 3, #ARGV do
  wrong = wrong or string.find(ARGV[i], start, 1, true) ~= 1
end
if wrong then
  return redis.error_reply('ERR owner must be client:0number')
end

--@include parts/holder.lua
local java = (holder and string.sub(holder, 37, 38) ~= ':0') and 1 or 0
local tail = call('LINDEX', queue, '-1')
local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
local ahead = 30000
local score = string.format('%d', now + ahead)
if not tail then
  if call('EXISTS', scores) == 1 then -- left over from a deleted queue
    call('ZREMRANGEBYRANK', scores, '0', '-1')
  end
elseif string.sub(tail, 37, 38) ~= ':0' or call('ZCOUNT', scores, '(' .. score, '+inf') > 0 then
  -- 3e12 are 95 years: Java may intend to wait forever.
  ahead = math.max(ahead, math.min((call('ZSCORE', scores, tail) or 0) - now, 3e12))
  if string.sub(tail, 37, 38) ~= ':0' then
    ahead = math.max(ahead, (call('LLEN', queue) + 1) * 300000)
  end
  if ahead > 30000 then
    java, score = 1, string.format('%d', now + ahead)
  end
end
--@include parts/alive.lua

local owners, states, gone = {unpack(ARGV, 2)}, {}, call('EXISTS', unpack(KEYS, 6)) > 0
for i = #ARGV, 2, -1 do
  if gone and call('EXISTS', KEYS[i + 4]) == 1 then
    states[i - 1] = -2
    table.remove(owners, i - 1)
  elseif ARGV[i] == holder then
    states[i - 1] = 0
    table.remove(owners, i - 1)
  end
end
local scored, count = {}, #owners
for i = 1, count do
  scored[2 * i - 1], scored[2 * i] = score, owners[i]
end
local added = count > 0 and call('ZADD', scores, 'NX', unpack(scored)) or 0
if added > 0 and added < count then -- some wait since an earlier sending of this call
  for i = count, 1, -1 do
    if call('LPOS', queue, owners[i]) then
      table.remove(owners, i)
    end
  end
end
local place = 0
if added > 0 then
  local pushed = try('RPUSH', queue, unpack(owners))
  if type(pushed) == 'table' then
    call('ZREM', scores, unpack(owners))
    return pushed
  end
  place = added == count and pushed or 0
  if not tail or java == 1 then -- it must not stay forever if all its waiters die; heartbeats move the expiry on
    try('PEXPIRE', queue, '604800000')
    try('PEXPIRE', scores, '604800000')
  end
end
if holder and java == 0 and count == #ARGV - 1 then
  return place
end
for i = 1, #ARGV - 1 do
  states[i] = states[i] or 1
end
if holder then
  return {java, ahead, '', place, unpack(states)}
end

--@include parts/serve.lua
-- By pcall: the owners have entered, even if a key is of a wrong type.
local _, outcome, grant = pcall(serve, try('LRANGE', queue, '0', '1'), micros, lock, queue, scores, heartbeats, counter, me)
if outcome == 'again' then
  java = 2
end
place = place > 0 and try('LLEN', queue) or 0
return {java, ahead, grant or '', type(place) == 'number' and place or 0, unpack(states)}
