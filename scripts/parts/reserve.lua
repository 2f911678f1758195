-- reserve: with fencing, makes of `reply` {reply, first, last}: the fence numbers reserved for the hold.
if reserve ~= '0' then
  --@include parts/fence.lua
  local time = call('TIME')
  local first, last = mint(counter, counter_expiry, 1, time[1] * 1000000 + time[2])
  if not first then
    return last
  end
  reply = {reply, first, last}
end
