-- living: reads what is alive in the read/write `lock`: its `mode`, nil if it is free; how many `readers` it has; its `holder`, the
-- writer or else a reader, and the holder's `entries`; and `left`, the ms until the last hold ends, -1: never. A hold is alive as
-- long as one of its timeout keys is there; that of a Java writer has none, and lives as long as the lock. Dead holds are removed,
-- and so are that of `leaver`, an owner or nil, and a lock with its last hold. A mode without holds is free, and stays until it
-- expires. Refuses what is not a read/write lock, before it writes.
-- The timeout keys of others are not among KEYS: their names follow from the lock, and they share its slot. While that slot moves to
-- another node of a Redis Cluster, one may be on either node. The key `absent` of the slot, which never exists, is among KEYS: with
-- one that is missing, neither node runs the script (TRYAGAIN, ASK). So what is not seen here has gone.
local mode = redis.call('HGET', lock, 'mode')
if mode ~= 'read' and mode ~= 'write' and (mode or redis.call('EXISTS', lock, absent) > 0) then
  return redis.error_reply('WRONGTYPE the key holds a hash that is not a read/write lock')
end
local timeouts = string.find(lock, '{', 1, true) and lock .. ':' or '{' .. lock .. '}:'
local fields, readers, left, dead = mode and redis.call('HGETALL', lock) or {}, 0, 0, {}
local holder, entries, writer
for i = 1, #fields, 2 do
  local owner, count = fields[i], fields[i + 1]
  local number, suffix = string.match(owner, '^:(%-?%d+)(.*)$', 37)
  if owner == 'mode' then -- no owner
  elseif not string.find(owner, '^%-....%-....%-....%-', 9) or suffix ~= '' and suffix ~= ':write' or not string.find(count, '^%d+$')
    or #count > 5 then
    return redis.error_reply('WRONGTYPE the key holds a hash that is not a read/write lock')
  else
    local ours, lasts = string.sub(number, 1, 1) == '0', -2
    if suffix == ':write' and not ours then
      lasts = -1
    end
    for n = 1, lasts == -1 and 0 or ours and 1 or tonumber(count) do
      lasts = math.max(lasts, redis.call('PTTL', timeouts .. owner .. ':rwlock_timeout:' .. n))
    end
    if lasts == -1 then
      lasts = redis.call('PTTL', lock)
    end
    if lasts == -2 or owner == leaver then
      dead[#dead + 1] = owner
    else
      left = (left == -1 or lasts == -1) and -1 or math.max(left, lasts, 1)
      if suffix == ':write' then
        holder, entries, writer = owner, count, true
      else
        readers = readers + 1
        if not holder then
          holder, entries = owner, count
        end
      end
    end
  end
end
if mode and not holder then
  if #dead > 0 then
    redis.call('DEL', lock)
  elseif redis.call('PTTL', lock) == -1 then -- what is left of a lock has an expiry
    return redis.error_reply('WRONGTYPE the key holds a hash that is not a read/write lock')
  end
  mode = nil
elseif #dead > 0 or mode == 'write' and not writer then
  for _, owner in ipairs(dead) do
    redis.call('HDEL', lock, owner)
  end
  if mode == 'write' and not writer then
    redis.call('HSET', lock, 'mode', 'read')
    mode = 'read'
  end
  if left ~= -1 then -- refused: it lasts longer than its holds, which does no harm
    redis.pcall('PEXPIRE', lock, left)
  end
end
