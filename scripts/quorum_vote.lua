-- quorum_vote: what stands before acquire and acquire_each on a node with a restart guard. One line before it names the
-- marker and the replication ID for which the text is good; so its SHA-1 belongs to one boot, one replication ID and one epoch of a node:
-- a server that restarted does not know it, and the others are found out here.
-- KEYS[n]  the last key, the marker, string
-- Reply    {-3}  the node has no vote by this text; nothing is changed
if redis.call('GET', KEYS[#KEYS]) ~= marker or not string.find(redis.call('INFO', 'replication'), replID, 1, true) then
  return {-3}
end
