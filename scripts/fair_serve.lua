-- fair_serve: the part of those scripts that give a free lock to the next who waits; after fair_hold.

-- wake tells a Java waiter at the head that it may take the free lock. It keeps its turn for 3 s, or for 250 ms if nobody
-- heard: it subscribes only after it has entered. Reports whether it has the turn; not, if its client was silent before.
-- Whose turn ends when is noted beside the heartbeats, with the score, which is another if the owner has entered again. The score
-- itself may end 20 s later only: Java reads it by the clock of its own machine, and would leave if that clock were ahead.
local function wake(scores, heartbeats, channels, owner, silent, now)
  local score = redis.call('ZSCORE', scores, owner)
  if score and tonumber(score) <= now then
    return false
  end
  local noted, this = redis.call('HGET', heartbeats, 'java') or '', owner .. ' ' .. (score or '') .. ' '
  local ends = string.sub(noted, 1, #this) == this and tonumber(string.sub(noted, #this + 1))
  if ends and ends <= now then
    return false
  end
  local told = redis.pcall('PUBLISH', channels .. owner, '0')
  local heard = type(told) == 'number' and told > 0
  if not heard and silent then
    return false
  end
  if not ends then
    local turn = now + (heard and 3000 or 250)
    if not score or tonumber(score) > turn + 20000 then
      score = string.format('%d', turn + 20000)
      redis.pcall('ZADD', scores, score, owner)
    end
    redis.pcall('HSET', heartbeats, 'java', owner .. ' ' .. score .. ' ' .. turn)
    if redis.pcall('PTTL', heartbeats) == -1 and redis.pcall('PEXPIRE', heartbeats, '60000') ~= 1 then -- it must not stay for ever
      redis.pcall('HDEL', heartbeats, 'java')
    end
  end
  return true
end

-- run names up to most waiters of a client that follow in the queue without a gap, by their numbers.
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

-- serve gives a free lock to the first waiter that lives. Out of memory, Redis refuses the grant unless the script has
-- written before, as a release has; then nobody is served. It is given the first two of the queue, and
-- the server's clock in µs, or nil if it has not been read.
-- Returns 'served', 'again' (a look should follow soon: a Java waiter has the turn, or the dead were too many for one call)
-- or 'nobody'; and, if a waiter of the caller's was served, the grant: owner, first lease, first and last fence number, and
-- the numbers of the run's members, with a space between.
-- Others hear it in their client's inbox, with ' for ' and the lock behind. A waiter that did not hear it keeps its place
-- while its client lives; but one whose client has said that it is mute is given the lock all the same, and finds that by its
-- next look: it would never be served where the lock is always wanted.
local function serve(pair, micros, lock, queue, scores, heartbeats, counter, me)
  local call, try = redis.call, redis.pcall
  micros = micros or clock()
  local now = math.floor(micros / 1000)
  -- How channels' names begin; what follows is an owner, for that of a Java waiter, or a client, for its inbox.
  local channels = 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1) .. ':'
  local at, fewer, deaf, silent, first, last = 0, false, {}, nil, nil, nil
  for _ = 1, 1000 do
    local owner = pair[1]
    if not owner then
      return 'nobody'
    end
    local of, start, leaves, grant = string.sub(owner, 1, 36), string.sub(owner, 1, 38), true, nil
    if start ~= of .. ':0' then
      if at > 0 or wake(scores, heartbeats, channels, owner, silent == of, now) then
        return 'again'
      end
      silent = of
    elseif (tonumber(call('HGET', heartbeats, of) or '') or 0) <= now then
      call('HDEL', heartbeats, of)
    elseif deaf[of] then -- and with it those of its client that follow
      leaves = false
      repeat
        local row, same = call('LRANGE', queue, at + 1, at + 500), 0
        while row[same + 1] and string.sub(row[same + 1], 1, 38) == start do
          same = same + 1
        end
        at = at + same
      until same < 500
    else
      local names = ''
      if members ~= '0' and pair[2] and string.sub(pair[2], 1, 38) == start then
        names = run(queue, at + 1, at + members, start)
      end
      if not first and reserve ~= '0' then
        first, last = mint(counter, counter_expiry, names == '' and 1 or reserve, micros)
      end
      if not first then -- the waiter will ask for numbers, and be told why there are none
        first, last = '0', '0'
      end
      if not hold(lock, owner, first_lease) then
        return 'nobody'
      end
      grant = owner .. ' ' .. first_lease .. ' ' .. first .. ' ' .. last .. names
      local told = of == me and 1 or try('PUBLISH', channels .. of, grant .. ' for ' .. lock)
      leaves = type(told) == 'number' and told > 0
        or (tonumber(call('HGET', heartbeats, 'mute ' .. of) or '') or 0) > now
      if not leaves then
        call('HDEL', lock, owner)
        deaf[of] = true
      end
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
      try('ZREM', scores, owner) -- a score that Redis does not let go does no harm
    end
    if leaves and grant then
      return 'served', of == me and grant
    end
    pair = call('LRANGE', queue, at, at + 1)
  end
  return fewer and 'again' or 'nobody'
end
