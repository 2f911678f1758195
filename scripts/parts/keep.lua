-- keep: makes `holds` last until `latest`, when the last of their leases ends, and `record` too, or a week if it was `resized`.
-- `kept` is 1, or an error: that of Redis, or that `holds` has gone, on a server that lets its clock run on during a script.
local left = math.max(latest - now, 1)
local kept = redis.pcall('PEXPIRE', holds, string.format('%.0f', left))
if kept == 0 then
  kept = redis.error_reply('TRYAGAIN the last lease has just ended')
elseif kept == 1 then
  local set = redis.pcall('PEXPIRE', record, string.format('%.0f', resized and math.max(left, 604800000) or left))
  kept = type(set) == 'table' and set or 1
end
