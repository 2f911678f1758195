-- held: says that `holder`, another, has `lock`.
local left, label = redis.call('PTTL', lock), string.match(fields[2], '^%d+ (.+)$')
left = left == -1 and -1 or math.max(left, 1)
return label and left .. ' ' .. label or left
