-- reserve: with fencing, turns `reply` into {reply, first, last}: as many fence numbers as `reserve` says, for the hold. This comes before
-- the hold: Redis may refuse it, and skipped numbers do no harm.
if reserve then
  --@include parts/fence.lua
  local time = redis.call('TIME')
  local first, last = mint(counter, counter_expiry, reserve, time[1] * 1000000 + time[2])
  if not first then
    return last
  end
  reply = {reply, first, last}
end
