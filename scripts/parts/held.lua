-- held: says that `holder`, another, has `lock`. left is at least 1: unlike Redis, some servers let their clock run on during a
-- script, so the lease may have ended.
local left, label = redis.call('PTTL', lock), string.match(fields[2] or '', '^%d+ (.+)$')
left = left == -1 and -1 or math.max(left, 1)
return label and left .. ' ' .. label or left
