-- fair_acquire_queued: the end of fair_acquire, after fair_serve: the lock is free, and somebody waits for it.
-- Also a waiter of this client learns of its grant from its inbox: nobody is me.
local pair = call('LRANGE', queue, '0', '1')
if serve(pair, nil, lock, queue, scores, heartbeats, counter, '') ~= 'nobody' or call('EXISTS', queue) == 1 then
  return 1
end
return take()
