-- fair_heartbeat: keep a client's places in its queues, and give free locks to their next waiters. Each lock by itself:
-- one that Redis refuses costs the others nothing. It works on a Redis that is out of memory.
-- KEYS[i]         and the next four: those of a lock, as in parts/fair.lua
-- ARGV[2]         the client
-- ARGV[at]        for at from 3 on: for each lock, how many owners follow
-- ARGV[at+1]      two digits: 1 if the client polls, as it does not hear its inbox; and 1 to ask for a place; otherwise 0
-- ARGV[at+2*i]    then an owner
-- ARGV[at+2*i+1]  and the least ms by which its score should lie ahead of the server's clock (at most 300 s for each waiter,
--                 and 300 s); 0 to leave it alone
-- Reply    an array with, for each lock:
--          {1, grant, place, label, absent...}
--                grant: that of a waiter of this client to which this call gave the lock, as serve returns it; only the
--                owner, if one of this client holds the lock; else ''. place: that of the first owner, where the next waiter has
--                1; 0 if it was not asked for, or does not wait. label: that of the holder, or empty. absent: the position
--                in this call of an owner that neither waits nor holds the lock
--          {2, grant, place, label, absent...}
--                the same, and a heartbeat should follow soon: a Java waiter has the turn, or too many waiters were dead, or
--                this client polls and is next in line
--          text  the error with which Redis refused
-- Repeat: safe.
--@include parts/fair.lua
--@include parts/settings.lua
if #KEYS % 5 ~= 0 then
  return redis.error_reply('ERR keys must be five for each lock')
end

--@include parts/serve.lua
local me = ARGV[2]
local function heartbeat(at, count, lock, queue, scores, heartbeats, counter)
  local time = call('TIME')
  local micros = time[1] * 1000000 + time[2]
  local now = math.floor(micros / 1000)
  --@include parts/holder.lua
  call('HDEL', heartbeats, '') -- changes nothing. Behind it, Redis takes HSET also when out of memory
  --@include parts/alive.lua
  local polls, asks = string.match(ARGV[at + 1], '^([01])([01])$')
  polls = polls == '1'
  if polls then -- it finds its grants by heartbeats, as long as it is alive
    call('HSET', heartbeats, 'polls ' .. me, now + waiter_ttl)
  end
  local soon, grant = false, ''
  if not holder then
    local pair = call('LRANGE', queue, '0', '1')
    local outcome, text = serve(pair, micros, lock, queue, scores, heartbeats, counter, me)
    soon = outcome == 'again'
    grant = text or ''
    holder = call('HRANDFIELD', lock, '1')[1]
  elseif string.sub(holder, 1, 36) == me then
    grant = holder
  else
    soon = polls and string.sub(call('LINDEX', queue, '0') or '', 1, 36) == me
  end
  local reply = {soon and 2 or 1, grant, 0, string.match(fields[2] or '', '^%d+ (.+)$') or ''}
  -- The scores tell which owners wait, unless the queue was deleted. Then each search in the queue also reads the neighbours of
  -- the owner: those of one client often stand together, and a search costs as much as the queue is long.
  local waiting, there = call('LLEN', queue), {}
  local whole, moved = call('ZCARD', scores) == waiting, false
  for i = 1, count do
    local owner, ahead = ARGV[at + 2 * i], ARGV[at + 2 * i + 1]
    if asks == '1' and i == 1 then
      reply[3] = (call('LPOS', queue, owner) or -1) + 1
    end
    if owner ~= holder then
      local waits = call('ZSCORE', scores, owner) and (whole or there[owner])
      if waits == nil then
        waits = call('LPOS', queue, owner)
        for _, near in ipairs(waits and count > 1 and call('LRANGE', queue, math.max(waits - 500, 0), waits + 500) or {}) do
          there[near] = true
        end
      end
      if not waits then
        table.insert(reply, i)
      elseif ahead ~= '0' then
        -- At most that: the next owner to enter builds on this score, and scores would run away.
        call('ZADD', scores, 'XX', 'GT', now + math.min(ahead, (waiting + 1) * 300000), owner)
        moved = true
      end
    end
  end
  if moved then
    try('PEXPIRE', queue, '604800000')
    try('PEXPIRE', scores, '604800000')
  end
  return reply
end

local replies, at = {}, 3
for i = 1, #KEYS, 5 do
  local count = tonumber(ARGV[at])
  local fine, reply = pcall(heartbeat, at, count, unpack(KEYS, i, i + 4))
  if not fine or reply.err then
    reply = type(reply) == 'table' and reply.err or tostring(reply)
  end
  table.insert(replies, reply)
  at = at + 2 + 2 * count
end
return replies
