-- fair: what the scripts of the fair queue share; it is put before each of them.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the queue, list of owners, the next one first
-- KEYS[3]  the scores, sorted set owner -> epoch ms: when Java counts a waiter as dead; of ours it is only shown to Java
-- KEYS[4]  the beats, hash client -> epoch ms until which we count it as alive
-- KEYS[5]  the fence counter, string
-- ARGV[1]  the caller's client id
-- ARGV[2]  start of the channels' names: with a client id the client's inbox, with an owner the channel of a Java waiter
-- ARGV[3]  five numbers with a space between: ms after which a silent client is dead; first lease in ms; fence numbers
--          to reserve for a hold, 0 without fencing; expiry of the counter in ms, 0: none; most members of a run, to 999
local call, try = redis.call, redis.pcall
local lock, queue, scores, beats, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, channels = ARGV[1], ARGV[2]
local stale, first_lease, reserve, counter_expiry, members =
  string.match(ARGV[3], '^([1-9]%d*) ([1-9]%d*) (%d+) (%d+) (%d+)$')
if not members or #stale > 12 or #first_lease > 15 or #reserve > 9 or #counter_expiry > 15 or #members > 3 then
  return redis.error_reply('ERR settings must be five whole numbers')
end
stale, reserve, members = tonumber(stale), tonumber(reserve), tonumber(members)

-- The server's clock, read once.
local micros
local function now()
  if not micros then
    local time = call('TIME')
    micros = time[1] * 1000000 + time[2]
  end
  return math.floor(micros / 1000)
end

-- Owners are client:number. Ours are told from Java's by a leading zero of the number.
local function ours(owner)
  return string.sub(owner, 37, 38) == ':0'
end
local function client(owner)
  return string.sub(owner, 1, 36)
end

-- mint reserves fence numbers for a hold, as acquire_fenced does; 0, 0 without fencing. nil and why if it cannot.
local function mint(numbers)
  if numbers == 0 then
    return '0', '0'
  end
  local previous = try('GET', counter)
  if type(previous) == 'table' then
    return nil, previous
  end
  now()
  local first = micros
  if previous then
    if #previous > 16 or not string.find(previous, '^%d+$') or tonumber(previous) > 9e15 then
      return nil, redis.error_reply('ERR fence counter must be a whole number up to 9000000000000000')
    end
    first = math.max(micros, previous + 1)
  end
  local last = string.format('%.0f', math.max(first, micros + numbers - 1))
  local set
  if counter_expiry == '0' or (previous and call('PTTL', counter) == -1) then
    set = try('SET', counter, last)
  else
    set = try('SET', counter, last, 'PX', counter_expiry)
  end
  if set.err then
    return nil, set
  end
  return string.format('%.0f', first), last
end

-- give back the numbers above last, which nobody has seen; see release.
local function unmint(last)
  local reserved = try('GET', counter)
  if type(reserved) == 'string' and (tonumber(reserved) or 0) > tonumber(last) then
    try('SET', counter, last, 'XX', 'KEEPTTL')
  end
end

-- hold makes owner the holder of a free lock. nil and why if Redis refuses; then the lock is free.
local function hold(owner, lease)
  local set = try('HSET', lock, owner, '1')
  if set == 1 then
    set = try('PEXPIRE', lock, lease)
    if set == 1 then
      return true
    end
    call('HDEL', lock, owner)
  end
  return nil, set
end

-- beat notes that the caller lives. A beat that is nearly new is not written again.
local function beat()
  local left = (tonumber(call('HGET', beats, me) or '') or 0) - now()
  if left > stale or left < stale * 0.9 then
    call('HSET', beats, me, now() + stale)
    local set = try('PEXPIRE', beats, stale + 60000)
    if set ~= 1 then -- refused: beats without expiry must not stay
      call('HDEL', beats, me)
      error(set)
    end
  end
end

-- drop takes the owner at a place out of the queue. A score that Redis does not let go does no harm.
local function drop(owner, at)
  if at == 0 then
    call('LPOP', queue)
  else
    call('LREM', queue, 1, owner)
  end
  try('ZREM', scores, owner)
end

-- wake tells a Java waiter at the head that it may take the free lock. It keeps its turn for 3 s, or for 250 ms if nobody
-- heard: it subscribes only after it has entered. Reports whether it has the turn.
local silent -- a Java client that has let a turn pass
local function wake(owner)
  local score = call('ZSCORE', scores, owner)
  if score and tonumber(score) <= now() then
    silent = client(owner)
    return false
  end
  local told = try('PUBLISH', channels .. owner, '0')
  local heard = type(told) == 'number' and told > 0
  if not heard and client(owner) == silent then
    return false
  end
  local turn = now() + (heard and 3000 or 250)
  if not score or tonumber(score) > turn then
    try('ZADD', scores, turn, owner)
  end
  return true
end

-- run names up to members waiters of owner's client that follow it in the queue without a gap, by their numbers.
local function run(owner, at, follower)
  if members == 0 or not follower or client(follower) ~= client(owner) or not ours(follower) then
    return ''
  end
  local names = ''
  for _, next in ipairs(call('LRANGE', queue, at + 1, at + members)) do
    if client(next) ~= client(owner) or not ours(next) then
      break
    end
    names = names .. ' ' .. string.sub(next, 38)
  end
  return names
end

-- serve gives a free lock to the first waiter that lives. Out of memory, Redis refuses the grant unless the script has
-- written before, as a release has; then nobody is served.
-- Returns 'served', 'again' (a look should follow soon: a Java waiter has the turn, or the dead were too many for one call)
-- or 'nobody'; and, if a waiter of the caller's was served, the grant: owner, first lease, first and last fence number, and
-- the numbers of the run's members, with a space between.
-- Others hear it in their client's inbox. A waiter that did not hear it keeps its place while its client lives.
local function serve()
  local at, deaf, first, last = 0, {}, nil, nil
  for _ = 1, 1000 do
    local pair = call('LRANGE', queue, at, at + 1)
    local owner = pair[1]
    if not owner then
      return 'nobody'
    end
    local of = client(owner)
    if not ours(owner) then
      if at > 0 or wake(owner) then
        return 'again'
      end
      drop(owner, at)
    elseif (tonumber(call('HGET', beats, of) or '') or 0) <= now() then
      drop(owner, at)
      call('HDEL', beats, of)
    elseif deaf[of] then
      at = at + 1
    else
      local names = run(owner, at, pair[2])
      if not first then
        first, last = mint(names == '' and math.min(reserve, 1) or reserve)
        if not first then -- the waiter will ask for numbers, and be told why there are none
          first, last = '0', '0'
        end
      end
      if not hold(owner, first_lease) then
        return 'nobody'
      end
      local grant = owner .. ' ' .. first_lease .. ' ' .. first .. ' ' .. last .. names
      local told = 1
      if of ~= me then
        told = try('PUBLISH', channels .. of, grant)
      end
      if type(told) == 'number' and told > 0 then
        drop(owner, at)
        return 'served', of == me and grant
      end
      call('HDEL', lock, owner)
      deaf[of] = true
      at = at + 1
    end
  end
  return at < 1000 and 'again' or 'nobody'
end
