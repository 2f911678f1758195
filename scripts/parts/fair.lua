-- Every script of the fair queue begins with these keys:
-- KEYS[1]  the lock, hash owner -> entries
-- KEYS[2]  the queue, list of owners, the next one first; it expires a week after the later of the last enter into an
--          empty queue and the last heartbeat that moved scores on; a turn of Java's sets it to 95 years, as Java sets none
-- KEYS[3]  the scores, sorted set owner -> Unix ms: when Java counts a waiter as dead; those of our waiters are for Java only;
--          it expires with the queue
-- KEYS[4]  the heartbeats, hash client -> Unix ms until which it counts as alive; label client -> its label; polls client ->
--          Unix ms until which it finds its grants by heartbeats, as it does not hear its inbox; java -> which Java waiter has
--          the turn
-- KEYS[5]  the fence counter, string
-- ARGV[1]  the settings, see parts/settings.lua
-- An owner is client:number. Our numbers begin with a zero, Java's do not.
-- Lua makes the functions of a script again in each call. That costs about as much as a command, and more with each variable
-- that they capture. So functions stand below the common cases and get the keys as arguments, numbers go to Redis as text where
-- possible, and the most common replies are plain numbers.
local call, try = redis.call, redis.pcall
local lock, queue, scores, heartbeats, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
