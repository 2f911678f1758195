-- fair_keep: the part of those scripts that keep places in the queue.

-- beat notes that a client lives. A beat that is nearly new is not written again.
local function beat(beats, me, stale, now)
  local left = (tonumber(redis.call('HGET', beats, me) or '') or 0) - now
  if left > stale or left < stale * 0.9 then
    redis.call('HSET', beats, me, now + stale)
    local set = redis.pcall('PEXPIRE', beats, stale + 60000)
    if set ~= 1 then -- refused: beats without expiry must not stay
      redis.call('HDEL', beats, me)
      error(set)
    end
  end
end
