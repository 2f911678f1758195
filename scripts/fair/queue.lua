-- fair_queue: the waiters of a lock, in their order. Changes nothing.
-- KEYS[1]  the queue, list of owners
-- KEYS[2]  the heartbeats, hash client -> Unix ms until which it counts as alive; label client -> its label
-- Reply    {owner, alive, label...}  for each waiter; alive: 1, or 0 if its client has sent no heartbeat in time, as Java never
--          does; label: that of its client, or empty
-- Repeat: safe.
--@include parts/now.lua
local reply, alive, label = {}, {}, {}
for _, owner in ipairs(redis.call('LRANGE', KEYS[1], '0', '-1')) do
  local client = string.sub(owner, 1, 36)
  if alive[client] == nil then
    alive[client] = (tonumber(redis.call('HGET', KEYS[2], client) or '') or 0) > now and 1 or 0
    label[client] = redis.call('HGET', KEYS[2], 'label ' .. client) or ''
  end
  reply[#reply + 1] = owner
  reply[#reply + 1] = alive[client]
  reply[#reply + 1] = label[client]
end
return reply
