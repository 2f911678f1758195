-- promote: the readers that have a wish in `wished` are next from now on, and go before other writers. Only fairness depends on it.
for i = 1, #wished, 2 do
  local reader = string.match(wished[i], '^reader (.+)$')
  if reader then
    local set = redis.pcall('HSET', wishes, 'next ' .. reader, wished[i + 1]) -- first: without a field, the expiry would be lost
    if type(set) == 'number' then
      redis.pcall('HDEL', wishes, wished[i])
    end
  end
end
