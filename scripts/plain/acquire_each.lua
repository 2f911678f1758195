-- acquire_each: acquire for many locks, each by itself.
-- Repeat: safe, as acquire.
local function one(KEYS, ARGV)
  --@include plain/acquire.lua
end
--@include parts/each.lua
