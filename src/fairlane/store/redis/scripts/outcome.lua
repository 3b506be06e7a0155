-- uses: rules records lines strands turns parking homes admitting
-- Outcome: what became of a batch that was published. ARGV: its name. As `enqueue` answers; nothing if it is not known.
local key = P .. '$staged' .. ARGV[2] .. '\0'
local stored = call('GET', key)
if not stored then
  return {}
end
call('DEL', key)
local now, refused, repeats, over, linked = unpack(unpack_one(stored))
return {now, refused, answers(repeats), over, linked or {}} -- an older client may have brought it to its end
