-- fair_enter_free: the end of fair_enter, after fair_serve: the lock is free.
local _, who, grant = pcall(serve, try('LRANGE', queue, '0', '1'), micros, lock, queue, scores, heartbeats, counter, me) -- who has entered has entered, whatever else is of a wrong type
if who == 'again' then
  java = 2
end
return {java, distance, grant or '', unpack(states)}
