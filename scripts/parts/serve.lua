-- wake tells the Java waiter at the head that it may take the free lock. The waiter keeps its turn for 3 s, or for 250 ms if the
-- message had no receiver, as Java subscribes only after it has entered. Returns whether the waiter has the turn. It has none if
-- its time has run out, or if no waiter of its client received the message before (silent).
-- The field java of the heartbeats notes the owner, its score, which changes if the owner enters again, and the end of its turn.
-- The score itself may end 20 s later: Java reads it by the clock of its own machine, and would leave if that clock were ahead.
local function wake(queue, scores, heartbeats, channels, owner, silent, now)
  local score = redis.call('ZSCORE', scores, owner)
  if score and tonumber(score) <= now then
    return false
  end
  local noted, this = redis.call('HGET', heartbeats, 'java') or '', owner .. ' ' .. (score or '') .. ' '
  local ends = string.sub(noted, 1, #this) == this and tonumber(string.sub(noted, #this + 1))
  if ends and ends <= now then
    return false
  end
  local receivers = redis.pcall('PUBLISH', channels .. owner, '0')
  local delivered = type(receivers) == 'number' and receivers > 0
  if not delivered and silent then
    return false
  end
  if not ends then
    --@include parts/stay.lua
    local turn = now + (delivered and 3000 or 250)
    if not score or tonumber(score) > turn + 20000 then
      score = string.format('%d', turn + 20000)
      redis.pcall('ZADD', scores, score, owner)
    end
    redis.pcall('HSET', heartbeats, 'java', owner .. ' ' .. score .. ' ' .. turn)
    if redis.pcall('PTTL', heartbeats) == -1 and redis.pcall('PEXPIRE', heartbeats, '60000') ~= 1 then -- it must not stay forever
      redis.pcall('HDEL', heartbeats, 'java')
    end
  end
  return true
end

-- run returns the numbers of up to most waiters of a client that follow in the queue without a gap.
local function run(queue, from, most, start)
  local names, count = {''}, 8
  while from <= most do
    local to = math.min(from + count - 1, most)
    local row = redis.call('LRANGE', queue, from, to)
    for _, owner in ipairs(row) do
      if string.sub(owner, 1, 38) ~= start then
        return table.concat(names, ' ')
      end
      names[#names + 1] = string.sub(owner, 38)
    end
    if #row < count then
      break
    end
    from, count = to + 1, count * 2
  end
  return table.concat(names, ' ')
end

-- serve gives a free lock to the first live waiter. pair is the first two of the queue; micros is the server's clock in µs, or
-- nil if it has not been read. If Redis is out of memory it refuses the grant, and no waiter is served, unless the script has
-- written before, as a release has.
-- Returns 'served', 'again' (a heartbeat should follow soon: a Java waiter has the turn, or too many waiters were dead for one call)
-- or 'nobody'; and, if a waiter of the client `me` was served, the grant: owner, grant lease, first and last fence number, and
-- the numbers of the run's members, with a space between.
-- Other clients get the grant as a message in their inbox, followed by ' for ' and the lock. If the message has no receiver,
-- serve passes over the waiter, which keeps its place while its client is alive. A client that has said that it polls still
-- gets the lock, and finds it by its next heartbeat: otherwise it would never get a lock that others always want.
-- The neighbours of a client without a receiver are skipped however many they are, as each call begins anew: with a bound, those
-- behind them would wait for that client. The numbers are taken for the first waiter that is granted the lock, and serve the next if
-- Redis refuses that message: nobody has heard of it. If nobody is served then, they are skipped.
local function serve(pair, micros, lock, queue, scores, heartbeats, counter, me)
  local call, try = redis.call, redis.pcall
  if not micros then
    local time = call('TIME')
    micros = time[1] * 1000000 + time[2]
  end
  local now = math.floor(micros / 1000)
  -- The prefix of channels: an owner follows for the channel of a Java waiter, a client for its inbox.
  local channels = 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1) .. ':'
  local at, fewer, undelivered, silent, fences = 0, false, {}, nil, nil
  for _ = 1, 1000 do
    local owner = pair[1]
    if not owner then
      return 'nobody'
    end
    local client, start, leaves, grant = string.sub(owner, 1, 36), string.sub(owner, 1, 38), true, nil
    if start ~= client .. ':0' then
      if at > 0 or wake(queue, scores, heartbeats, channels, owner, silent == client, now) then
        return 'again'
      end
      silent = client
    elseif (tonumber(call('HGET', heartbeats, client) or '') or 0) <= now then
      call('HDEL', heartbeats, client, 'label ' .. client)
    elseif undelivered[client] then -- skip the neighbours of the same client as well
      leaves = false
      repeat
        local row, same = call('LRANGE', queue, at + 1, at + 500), 0
        while row[same + 1] and string.sub(row[same + 1], 1, 38) == start do
          same = same + 1
        end
        at = at + same
      until same < 500
    else
      -- A subscriber at a replica, or at another node of a Redis Cluster, gets messages that PUBLISH does not count, and would
      -- believe a grant that is taken back here. So a grant is sent only if the inbox has a subscriber at this server, and what
      -- was sent is not taken back.
      local inbox, names = channels .. client, ''
      local sends = client ~= me and (try('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0
      leaves = client == me or sends or (tonumber(call('HGET', heartbeats, 'polls ' .. client) or '') or 0) > now
      if leaves then
        if (client == me or sends) and members ~= '0' and pair[2] and string.sub(pair[2], 1, 38) == start then
          names = run(queue, at + 1, at + members, start)
        end
        if not fences and reserve ~= '0' then
          --@include parts/fence.lua
          local first, last = mint(counter, counter_expiry, names == '' and 1 or reserve, micros)
          fences = first and string.format(' %.0f %.0f', first, last)
        end
        fences = fences or ' 0 0' -- the waiter will confirm, and learn why there are no numbers
        local label = call('HGET', heartbeats, 'label ' .. client)
        if try('HSET', lock, owner, label and '1 ' .. label or '1') ~= 1 or try('PEXPIRE', lock, grant_lease) ~= 1 then
          call('HDEL', lock, owner) -- refused: a lock without expiry must not stay
          return 'nobody'
        end
        grant = owner .. ' ' .. grant_lease .. fences .. names
        if sends then
          local receivers = try('PUBLISH', inbox, grant .. ' for ' .. lock)
          leaves = type(receivers) == 'number' and receivers > 0
        end
        if not leaves then -- refused
          call('HDEL', lock, owner)
        end
      end
      undelivered[client] = not leaves
    end
    if leaves and at == 0 then
      call('LPOP', queue)
    elseif leaves then
      call('LREM', queue, '1', owner)
    else
      at = at + 1
    end
    if leaves then
      fewer = true
      try('ZREM', scores, owner) -- a score that stays does no harm
    end
    if leaves and grant then
      return 'served', client == me and grant
    end
    pair = call('LRANGE', queue, at, at + 1)
  end
  return fewer and 'again' or 'nobody'
end
