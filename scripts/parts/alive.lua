-- alive: note that the client `me` is alive at `now`, and its label. A heartbeat that is nearly new is not written again. Each
-- write also removes the dead among five random fields, of which a client has two, or three if it has polled; the third goes when
-- it is drawn itself. So the dead are soon fewer than the living, however many come and go.
local left = (tonumber(redis.call('HGET', heartbeats, me) or '') or 0) - now
if left > tonumber(waiter_ttl) or left < waiter_ttl * 0.9 then
  if label == '' then
    redis.call('HSET', heartbeats, me, now + waiter_ttl)
  else
    redis.call('HSET', heartbeats, me, now + waiter_ttl, 'label ' .. me, string.sub(label, 2))
  end
  local set = redis.pcall('PEXPIRE', heartbeats, waiter_ttl + 60000)
  if set ~= 1 then -- refused: heartbeats without expiry must not stay
    redis.call('HDEL', heartbeats, me, 'label ' .. me)
    return set
  end
  local some = redis.pcall('HRANDFIELD', heartbeats, '5', 'WITHVALUES') -- refused: none is removed
  for i = 2, #some, 2 do
    if (tonumber(some[i]) or now + 1) <= now and string.sub(some[i - 1], 1, 6) ~= 'label ' then
      redis.pcall('HDEL', heartbeats, some[i - 1], 'label ' .. some[i - 1])
    end
  end
end
