-- permits_release_each: permits_release for many keys, each by itself.
-- Repeat: safe, as permits_release.
local function one(KEYS, ARGV)
  --@include permits/release.lua
end
--@include parts/each.lua
