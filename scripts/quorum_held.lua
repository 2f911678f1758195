-- quorum_held: what stands before acquire on a node of a quorum. A client that is refused has to know by whom: many nodes
-- held by one owner are a lock, by many owners a split vote.
-- KEYS[1]  the lock, hash owner -> count
-- ARGV[1]  owner
-- Reply    {left, holder}  held by another: ms until its lease ends, -1 if it has no end
local holder = redis.call('HKEYS', KEYS[1])[1]
if holder and holder ~= ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  return {left == -1 and -1 or math.max(left, 1), holder}
end
