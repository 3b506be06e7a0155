-- uses: rules records lines strands turns parking homes admitting
-- Enqueue: store a small batch whole, or nothing of it. ARGV: options, the items. Gives the instant, the refusals, the
-- repeats with the jobs that answer for them, who is above a limit, and the correlation ids of those that replace a dead
-- job.
local options, items = unpack_one(ARGV[2]), read_items(ARGV[3])
know_items(items)
for i, item in ipairs(items) do
  admit(i, item, options)
end
local repeats = answers(outcome.repeats)
if #outcome.refused == 0 then
  commit()
end
return {NOW, outcome.refused, repeats, outcome.over, outcome.linked}
