-- A subscriber at a replica, or at another node of a Redis Cluster, gets messages that PUBLISH does not count: it would believe
-- a grant that is taken back here. So nothing is sent unless the inbox has a subscriber at this server.
if not receivers then
  local listeners = try('PUBSUB', 'NUMSUB', inbox)
  receivers = (listeners[2] or 0) == 0 and 0
end
