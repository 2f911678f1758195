-- wished: reads the wish `i` among `wished`: `who` has it, and the client `of` that; until when it `ends`, since when it `began`, and
-- whether it `counts`. An expired one does not, nor one that ends so late that the clock has jumped back.
local who, of = string.match(wished[i], '^(%l+) (.*)$')
local ends, began = string.match(wished[i + 1], '^(%d+) (%d+)$')
local counts = ends and tonumber(ends) > now and ends - now <= 60000
