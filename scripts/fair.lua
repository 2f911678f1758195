-- fair: the start of each script of the fair queue.
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the queue, list of owners, the next one first
-- KEYS[3]  the scores, sorted set owner -> epoch ms: when Java counts a waiter as dead; of ours it is only shown to Java
-- KEYS[4]  the heartbeats, hash client -> epoch ms until which we count it as alive; mute client ->
--          until when it does not hear its inbox, but looks; and java -> which Java waiter has the turn
-- KEYS[5]  the fence counter, string
-- ARGV[1]  the settings, see fair_settings
-- What only some calls need is in parts of its own, put where it is needed: Lua makes the functions of a script anew in each
-- call, which costs about as much as a command, and more with each variable that they take from outside. For the same reason
-- functions are given the keys, numbers go to Redis as text where they can, and the commonest replies are plain numbers.
-- Owners are client:number. Ours are told from Java's by a leading zero of the number.
local call, try = redis.call, redis.pcall
local lock, queue, scores, heartbeats, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
