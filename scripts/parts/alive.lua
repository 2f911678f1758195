-- alive: note that the client `me` is alive at `now`. A heartbeat that is nearly new is not written again. Each write also
-- removes the dead among three random clients: so the dead are soon fewer than the living, however many come and go.
local left = (tonumber(redis.call('HGET', heartbeats, me) or '') or 0) - now
if left > tonumber(stale) or left < stale * 0.9 then
  redis.call('HSET', heartbeats, me, now + stale)
  local set = redis.pcall('PEXPIRE', heartbeats, stale + 60000)
  if set ~= 1 then -- refused: heartbeats without expiry must not stay
    redis.call('HDEL', heartbeats, me)
    return set
  end
  local some = redis.pcall('HRANDFIELD', heartbeats, '3', 'WITHVALUES') -- nothing before Redis 6.2
  for i = 2, #some, 2 do
    if (tonumber(some[i]) or now + 1) <= now then
      redis.pcall('HDEL', heartbeats, some[i - 1])
    end
  end
end
