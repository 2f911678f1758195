-- now: reads the server's clock, `now` in Unix ms. The scores of leases that live are from `live` on.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = string.format('(%.0f', now)
