-- keep: has `permits` last until `last`, when the last of their leases ends, and `settings` too, or a week if they were `resized`.
-- `kept` is 1, or what Redis said instead.
local left = math.max(last - now, 1)
local kept = redis.pcall('PEXPIRE', permits, string.format('%.0f', left))
if kept == 1 then
  local set = redis.pcall('PEXPIRE', settings, string.format('%.0f', resized and math.max(left, 604800000) or left))
  kept = type(set) == 'table' and set or 1
end
