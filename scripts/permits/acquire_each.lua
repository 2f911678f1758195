-- permits_acquire_each: permits_acquire for many keys, each by itself.
-- Repeat: safe, as permits_acquire.
local function one(KEYS, ARGV)
  --@include permits/acquire.lua
end
--@include parts/each.lua
