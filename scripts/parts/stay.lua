-- stay: a Java waiter is the next, and perhaps none of ours is left, whose heartbeats move the expiry of the queue on. Java sets
-- none and must not lose its places: 3e12 ms are 95 years.
redis.pcall('PEXPIRE', queue, '3000000000000')
redis.pcall('PEXPIRE', scores, '3000000000000')
