-- The keys that every script of the fair queue begins with:
-- KEYS[1]  the lock, hash owner -> count
-- KEYS[2]  the queue, list of owners, the next one first
-- KEYS[3]  the scores, sorted set owner -> epoch ms: when Java counts a waiter as dead; those of our waiters are for Java only
-- KEYS[4]  the heartbeats, hash client -> epoch ms until which it counts as alive; mute client -> until when it does not
--          listen to its inbox and finds its grants by heartbeats; java -> which Java waiter has the turn
-- KEYS[5]  the fence counter, string
-- ARGV[1]  the settings, see parts/settings.lua
-- Owners are client:number. A number of ours begins with a zero, Java's does not.
-- Lua makes the functions of a script anew in each call, which costs about as much as a command, and more with each variable
-- that they take from outside. So functions stand below the common cases and are given the keys, numbers go to Redis as text
-- where they can, and the commonest replies are plain numbers.
local call, try = redis.call, redis.pcall
local lock, queue, scores, heartbeats, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
