-- fair_leave_each: fair_leave for many locks, each by itself.
-- Repeat: safe, as fair_leave.
local function one(KEYS, ARGV)
  --@include fair/leave.lua
end
--@include parts/each.lua
