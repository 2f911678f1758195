-- fair_pass: the end of fair_release and fair_leave, after fair_serve: the lock is free, and a pair of the queue waits.
local me = string.sub(ARGV[2], 1, 36)
local _, who, grant = pcall(serve, pair, nil, lock, queue, scores, heartbeats, counter, me)
return grant or (who == 'again' and 2 or 1)
