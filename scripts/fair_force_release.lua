-- fair_force_release: free a lock, whoever holds it, and give it to the next who waits.
-- Reply    1    it was held
--          0    it was free
-- Repeat: unsafe. A second run ends the hold of whoever was granted the lock by the first.
local holder, foreign = holds(lock)
if not holder then
  return foreign or 0
end
call('DEL', lock)
-- What is done is done, whatever a queue of a wrong type says. Also a waiter of this client learns of its grant from its
-- inbox: nobody is me.
pcall(serve, try('LRANGE', queue, '0', '1'), nil, lock, queue, scores, heartbeats, counter, '')
return 1
