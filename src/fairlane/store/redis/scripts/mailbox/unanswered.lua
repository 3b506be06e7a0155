-- uses: questions
-- Return the questions that a worker may still answer, oldest first.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker.
-- Reply: id, kind and instant of each.
local found = find_questions(function(question)
  return question[ASKED_WORKER] == ARGV[2] and question[ANSWERED_AT] == 0 and question[ASKED_UNTIL] > NOW
end)
local reply = {}
for i, question in ipairs(found) do
  reply[i] = {question.id, question[ASKED_KIND], question[ASKED_AT]}
end
return reply
