-- uses:
-- Find the settlements of the oldest succeeded and cancelled jobs, for a pass that prunes early (S126).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] from which settlement on; [3] how many; [4] and [5] the numbers of the states succeeded and cancelled.
-- Reply: the settlements, oldest first.

local found = {}
for _, state in ipairs({ARGV[4], ARGV[5]}) do
  local page = call('ZRANGEBYSCORE', PREFIX .. '$finished' .. state, ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  for i = 2, #page, 2 do
    found[#found + 1] = tonumber(page[i])
  end
end
table.sort(found)
local oldest = {}
for i = 1, math.min(#found, tonumber(ARGV[3])) do
  oldest[i] = found[i]
end
return oldest
