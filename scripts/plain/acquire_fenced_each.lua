-- acquire_fenced_each: acquire_fenced for many locks, each by itself.
-- Repeat: safe, as acquire_fenced.
local function one(KEYS, ARGV)
  --@include plain/acquire_fenced.lua
end
--@include parts/each.lua
