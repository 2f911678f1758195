-- settings: the five numbers of ARGV[1], with a space between, and the label of the client behind a semicolon, if it has one:
-- ms after which a silent client counts as dead; grant lease in ms; expiry of the fence counter in ms, 0: none; most members of
-- a run, up to 999; fence numbers to reserve for a hold, 0 without fencing.
local waiter_ttl, grant_lease, counter_expiry, members, reserve, label =
  string.match(ARGV[1], '^([1-9]%d*) ([1-9]%d*) (%d+) (%d+) (%d+)(.*)$')
if not members or label ~= '' and string.sub(label, 1, 1) ~= ';' or #waiter_ttl > 12 or #grant_lease > 15 or #reserve > 9
  or #counter_expiry > 15 or #members > 3 then
  return redis.error_reply('ERR settings must be five whole numbers, and a label behind a semicolon')
end
