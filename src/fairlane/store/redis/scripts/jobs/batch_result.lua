-- uses: jobs/admission
-- Return what became of a published batch, and forget it.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] its name.
-- Reply: as jobs/enqueue.lua; empty if it is not known.
local key = PREFIX .. '$staged' .. ARGV[2] .. '\0'
local stored = call('GET', key)
if not stored then
  return {}
end
call('DEL', key)
local now, refused, repeats, over, linked = unpack(unpack_one(stored))
return {now, refused, existing_jobs(repeats), over, linked or {}} -- an older client may have brought it to its end
