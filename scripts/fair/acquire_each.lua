-- fair_acquire_each: fair_acquire for many locks, each by itself.
-- Repeat: safe, as fair_acquire.
local function one(KEYS, ARGV)
  --@include fair/acquire.lua
end
--@include parts/each.lua
