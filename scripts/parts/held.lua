-- held: says that `holder`, another, has `lock`. It may have ended by now on a server whose clock goes on during a script; the
-- clock of Redis stands still meanwhile.
local left, label = redis.call('PTTL', lock), string.match(fields[2] or '', '^%d+ (.+)$')
left = left == -1 and -1 or math.max(left, 1)
return label and left .. ' ' .. label or left
