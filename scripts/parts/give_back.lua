-- give_back: gives back to `counter` the fence numbers above `last`, the last one used. That is safe because numbers are reserved
-- only for the holder: while the owner's field stands, all above the last used one are its own, and no other client has seen
-- them. The counter is only ever lowered to a number in use, with its expiry kept, and never created. Redis refuses none of this
-- when it is out of memory.
local reserved = redis.pcall('GET', counter)
if type(reserved) == 'string' and (tonumber(reserved) or 0) > tonumber(last) then
  redis.pcall('SET', counter, last, 'KEEPTTL')
end
