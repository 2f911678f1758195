-- fair_enter: join the queue, several owners of one client at once, each for the first time in its life. Who comes first
-- and finds the lock free gets it.
-- KEYS[i+2]  the tombstone of the owner ARGV[i], string
-- ARGV[i]    an owner, for i from 4 on
-- Reply    {java, distance, grant, state...}
--          java: 1 if Java holds the lock or waits before, so that its release may wake an owner by the owner's own
--          channel; 2 if a look should follow soon: a Java waiter has the turn, or the dead were too many; else 0
--          distance: ms by which the new scores lie ahead of the server's clock; to be kept so by fair_beat
--          grant: a waiter of this client to which the lock was given just now, as fair says; else ''
--          a state for each owner:
--          1   it waits, or was granted the lock just now
--          0   it holds the lock, since an earlier sending of this call
--          -2  it has been given up by fair_leave; nothing is changed for it
-- Repeat: safe. Who waits already keeps its place.
if #KEYS < 6 or #KEYS - 5 ~= #ARGV - 3 then
  return redis.error_reply('ERR tombstones must be as many as owners')
end
for i = 4, #ARGV do
  if not ours(ARGV[i]) or client(ARGV[i]) ~= me then
    return redis.error_reply('ERR owner must be client:0number')
  end
end

local holder = call('HKEYS', lock)[1]
local tail = call('LINDEX', queue, -1)
local distance, java = 30000, (holder and not ours(holder)) and 1 or 0
if tail then
  -- 3e12 are 95 years: Java may mean to wait for ever.
  distance = math.max(distance, math.min((call('ZSCORE', scores, tail) or 0) - now(), 3e12))
  if not ours(tail) then
    distance = math.max(distance, (call('LLEN', queue) + 1) * 300000)
  end
  if distance > 30000 then
    java = 1
  end
elseif call('EXISTS', scores) == 1 then -- left by a queue that somebody has deleted
  call('ZREMRANGEBYRANK', scores, 0, -1)
end
beat()

local gone = call('EXISTS', unpack(KEYS, 6)) > 0
local reply = {java, distance, ''}
for i = 4, #ARGV do
  local owner, state = ARGV[i], 1
  if gone and call('EXISTS', KEYS[i + 2]) == 1 then
    state = -2
  elseif owner == holder then
    state = 0
  elseif call('ZADD', scores, 'NX', now() + distance, owner) == 1 then
    local pushed = try('RPUSH', queue, owner)
    if type(pushed) == 'table' then
      call('ZREM', scores, owner)
      return pushed
    end
  end
  reply[i] = state
end
if not holder then
  local _, who, grant = pcall(serve) -- who has entered has entered, whatever else is of a wrong type
  if who == 'again' then
    reply[1] = 2
  end
  reply[3] = grant or ''
end
return reply
