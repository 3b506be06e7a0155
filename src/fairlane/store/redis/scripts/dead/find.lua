-- uses: dead/scan
-- Find dead letters, latest death first.
-- KEYS[1], ARGV[1]: base/buffer.lua. ARGV: [2...] dead/scan.lua.
-- Reply: ids of letters of which nothing is noted yet (then nothing was read); whether the end was reached; whether a
-- bound was; time of death and id of the last that was read; how many of the tenant's own were read, time of death and
-- id of their last; the ids that were found.
local found = {}
scan.run(function(id)
  found[#found + 1] = id
end)
return scan.reply(found)
