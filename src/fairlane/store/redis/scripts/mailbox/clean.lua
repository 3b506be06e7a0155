-- uses: questions
-- Delete old questions and their answers.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how old.
-- Reply: how many.
local old = find_questions(function(question)
  return NOW - question[ASKED_AT] >= tonumber(ARGV[2])
end)
for _, question in ipairs(old) do
  drop_question(question.id)
end
commit()
return #old
