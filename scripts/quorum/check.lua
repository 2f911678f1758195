-- quorum_check: find out whether a node may vote. A node without a valid marker was started, emptied or promoted: it is marked
-- now, and has no vote until the longest lease has passed, as it may have forgotten locks that are still held.
-- The marker holds, with a space between: incarnation, run id, replication ID, time of the marking in Unix ms of the server,
-- longest lease in ms, number of nodes. It has no expiry.
-- KEYS[1]  the marker, string
-- ARGV[1]  a random incarnation for a new marker, never sent before
-- ARGV[2]  longest lease in ms, 1 to 999999999999999
-- ARGV[3]  number of nodes of the deployment, 1 to 99: a node votes for one number at a time
-- ARGV[4]  observe   change nothing
--          mark      mark a node if its marker is absent or is not of this boot and replication ID
--          activate  give the node its vote immediately, if its marker is valid and of the incarnation ARGV[5]: it has forgotten
--                    nothing since a call with mark found or wrote that marker
-- ARGV[5]  optional, the incarnation for activate
-- Reply    {run id, version, policy, replID, marker, left}
--          policy: maxmemory-policy; replID: the line of INFO replication that quorum_acquire requires; left: ms until the node
--          has a vote, 0: it has, -1: never by this marker
-- Repeat: safe. The second finds the marker of the first.
if #ARGV[2] > 15 or not string.find(ARGV[2], '^[1-9]%d*$') then
  return redis.error_reply('ERR longest lease must be a whole number of ms from 1 to 999999999999999')
end
if #ARGV[3] > 2 or not string.find(ARGV[3], '^[1-9]%d*$') then
  return redis.error_reply('ERR number of nodes must be a whole number from 1 to 99')
end
if not string.find(ARGV[1], '^%x+$') then
  return redis.error_reply('ERR incarnation must be hexadecimal')
end

local info = '\n' .. redis.call('INFO')
local function field(name)
  return string.match(info, '[\r\n]' .. name .. ':([^\r\n]*)') or ''
end
local run, replID = field('run_id'), field('master_replid')
--@include parts/now.lua

local function write(since)
  local text = ARGV[1] .. ' ' .. run .. ' ' .. replID .. ' ' .. string.format('%.0f', since) .. ' ' .. ARGV[2] .. ' ' .. ARGV[3]
  redis.call('SET', KEYS[1], text)
  return text
end

local marker = redis.call('GET', KEYS[1]) or ''
local incarnation, of, under, since, longest = string.match(marker, '^(%x+) (%w*) (%w*) (%d+) (%d+) %d+$')
local valid = incarnation and of == run and under == replID and tonumber(since) <= now -- otherwise the clock has stepped back
if ARGV[4] == 'activate' then
  if valid and incarnation == ARGV[5] then
    marker, since, longest = write(0), 0, ARGV[2]
  end
elseif ARGV[4] == 'mark' and not valid then
  if incarnation and tonumber(longest) > tonumber(ARGV[2]) then
    ARGV[2] = longest -- other clients may hold leases as long as that
  end
  marker, since, longest = write(now), now, ARGV[2]
  valid = true
end
-- Clocks may run at rates that differ by 1 %.
local left = valid and math.max(since + longest * 1.02 + 2 - now, 0) or -1
return {run, field('redis_version'), field('maxmemory_policy'), 'master_replid:' .. replID, marker, math.ceil(left)}
