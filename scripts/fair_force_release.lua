-- fair_force_release: free a lock, whoever holds it, and give it to the next who waits.
-- Reply    1    it was held
--          0    it was free
-- Repeat: unsafe. A second run ends the hold of whoever was granted the lock by the first.
if call('HLEN', lock) == 0 then
  return 0
end
call('DEL', lock)
me = '' -- also a waiter of this client learns of its grant from its inbox
pcall(serve) -- what is done is done, whatever a queue of a wrong type says
return 1
