-- fair_acquire_else: fair_acquire goes on, after fair_hold.
local found = false
local function take()
  local reply = 0
  if reserve ~= '0' then
    local first, last = mint(counter, counter_expiry, 1, clock())
    if not first then
      return last
    end
    reply = {0, tonumber(first), tonumber(last)}
  end
  if not found then
    local held, why = hold(lock, ARGV[2], ARGV[3])
    if not held then
      return why
    end
  end
  return reply
end

if call('EXISTS', lock, queue, KEYS[6]) == 0 then
  return take()
end
if call('EXISTS', KEYS[6]) == 1 then
  return -2
end
local holder, foreign = holds(lock)
if foreign then
  return foreign
end
found = holder == ARGV[2]
if found then
  return take()
end
if holder then
  local left = call('PTTL', lock)
  return left == -1 and -1 or math.max(left, 1)
end
