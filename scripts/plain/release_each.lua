-- release_each: release for many locks, each by itself.
-- Repeat: safe, as release.
local function one(KEYS, ARGV)
  --@include plain/release.lua
end
--@include parts/each.lua
