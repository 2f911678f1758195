-- note_wish: notes that `who` wishes for the lock for `wish` ms from `now`, and has done so since `since`. Only fairness depends on it:
-- if Redis refuses it, there is none.
if type(redis.pcall('HSET', wishes, who, now + wish .. ' ' .. since)) == 'number' and redis.pcall('PEXPIRE', wishes, wish) ~= 1 then
  redis.pcall('DEL', wishes) -- they must not stay
end
