-- uses:
-- Return a question's instants and its answer.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the id.
-- Reply: when it was asked and answered (0 for not yet), and the text; nothing if it is not kept.
local stored = hget('$questions', ARGV[2])
if not stored then
  return false
end
local question = unpack_one(stored)
return {question[ASKED_AT], question[ANSWERED_AT], hget('$answers', ARGV[2])}
