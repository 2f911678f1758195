-- fair_holder: the part of those scripts that ask who holds a lock.

-- holds returns the owner that holds a lock, nil if it is free; nil and an error if what is there is no lock.
local function holds(lock)
  local fields = redis.call('HRANDFIELD', lock, '2') -- never all of them: what others keep there may be large
  local owner = fields[1]
  if owner and (fields[2] or not string.find(owner, '^%-....%-....%-....%-', 9) or not string.find(owner, '^:%-?%d+$', 37)) then
    return nil, redis.error_reply('WRONGTYPE the key holds a hash that is not a lock')
  end
  return owner
end
