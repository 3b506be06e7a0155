-- uses: rules records lines turns parking homes admitting
-- Enqueue: store a small batch whole, or nothing of it. ARGV: options, the ids (16 bytes each), the items, then a body
-- each. Gives the instant, the refusals, the repeats with the jobs that answer for them, and who is above a limit.
local options, ids = unpack_one(ARGV[2]), read_ids(ARGV[3])
local items = read_items(ARGV[4], #ids)
know_items(ids, items)
for i, item in ipairs(items) do
  admit(i, ids[i], item, ARGV[4 + i], options)
end
local repeats = answers(outcome.repeats)
if #outcome.refused == 0 then
  commit()
end
return {NOW, outcome.refused, repeats, outcome.over}
