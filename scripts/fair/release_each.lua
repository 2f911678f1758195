-- fair_release_each: fair_release for many locks, each by itself.
-- Repeat: safe, as fair_release.
local function one(KEYS, ARGV)
  --@include fair/release.lua
end
--@include parts/each.lua
