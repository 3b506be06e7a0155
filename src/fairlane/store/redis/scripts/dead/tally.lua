-- uses: dead/scan
-- Count dead letters by their records.
-- KEYS[1], ARGV[1]: base/buffer.lua. ARGV: [2...] dead/scan.lua.
-- Reply: as dead/find.lua; at the end for each record how many letters have it, the first and the last time of death,
-- and the id of the last letter.
local groups, order = {}, {}
scan.run(function(id, stored, died_at)
  local group = groups[stored]
  if not group then
    group = {stored, 0, died_at, died_at, id}
    groups[stored], order[#order + 1] = group, group
  end
  group[2], group[3] = group[2] + 1, died_at
end)
return scan.reply(order)
