-- uses:
-- Return the stored policies of some subjects, as they were set.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2...] the subjects.
-- Reply: the instant, then the stored bytes of each ('' if there are none).
local found = {NOW}
for i = 2, #ARGV do
  found[i] = hget('$policies', ARGV[i]) or ''
end
return found
