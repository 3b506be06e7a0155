-- uses:
-- Store the answer to a question, once.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the id; [3] the worker; [4] the text.
-- Reply: 1, or 0 if it may not be answered.
local stored = hget('$questions', ARGV[2])
local question = stored and unpack_one(stored)
if not question or question[ASKED_WORKER] ~= ARGV[3] or question[ANSWERED_AT] ~= 0 or question[ASKED_UNTIL] <= NOW then
  return 0
end
question[ANSWERED_AT] = NOW
hset('$questions', ARGV[2], pack(question))
hset('$answers', ARGV[2], ARGV[4])
commit()
return 1
