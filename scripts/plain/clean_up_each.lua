-- clean_up_each: clean_up for many locks, each by itself.
-- Repeat: safe, as clean_up.
local function one(KEYS, ARGV)
  --@include plain/clean_up.lua
end
--@include parts/each.lua
