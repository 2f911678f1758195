-- rw_release_each: rw_release for many locks, each by itself.
-- Repeat: safe, as rw_release.
local function one(KEYS, ARGV)
  --@include rw/release.lua
end
--@include parts/each.lua
