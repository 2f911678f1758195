-- fair_force_release: free a lock from any holder, and give it to the next waiter.
-- Reply    1    it was held
--          0    it was free
-- Repeat: unsafe. A second run ends the hold of the waiter to which the first gave the lock.
--@include parts/fair.lua
--@include parts/settings.lua
--@include parts/holder.lua
if not holder then
  return call('HDEL', lock, '') -- 0; refused where no writes are taken, as by a replica, which may not know of the hold yet
end
call('DEL', lock)
--@include parts/serve.lua
-- By pcall: the lock is free, even if the queue is of a wrong type. No waiter has the client '', so a waiter of the caller also
-- gets its grant in its inbox.
pcall(serve, try('LRANGE', queue, '0', '1'), nil, lock, queue, scores, heartbeats, counter, '')
return 1
