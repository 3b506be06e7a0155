-- uses:
-- Return some hashes whole: workers, tasks, leads, meta. They are as small as the number of workers and tasks.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2...] the hashes.
-- Reply: the instant, then fields and values of each.
local found = {NOW}
for i = 2, #ARGV do
  found[i] = call('HGETALL', PREFIX .. ARGV[i])
end
return found
