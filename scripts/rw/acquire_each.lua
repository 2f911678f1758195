-- rw_acquire_each: rw_acquire for many locks, each by itself.
-- Repeat: safe, as rw_acquire.
local function one(KEYS, ARGV)
  --@include rw/acquire.lua
end
--@include parts/each.lua
