-- label: reads the `label` of the `holder` of a read/write lock, nil if it has none.
local label = string.match(redis.call('GET', timeouts .. holder .. ':rwlock_timeout:1') or '', '^1 (.+)$')
