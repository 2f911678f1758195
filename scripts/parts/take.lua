-- take: make `owner` the holder of the free `lock` for `lease` ms. Its field gets `value`.
redis.call('HSET', lock, owner, value)
local set = redis.pcall('PEXPIRE', lock, lease)
if set ~= 1 then -- refused: a lock without expiry must not stay
  redis.call('HDEL', lock, owner)
  return set
end
