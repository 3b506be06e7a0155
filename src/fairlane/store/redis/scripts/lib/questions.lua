-- uses:
-- Questions to workers (S70): hash `questions` by id, and `answers` by the same id. They are few: a worker has at most
-- MAX_QUESTIONS, and none is kept for longer than an hour.

-- All questions for which `is_wanted` holds, oldest first.
local function find_questions(is_wanted)
  local stored, found = call('HGETALL', PREFIX .. '$questions'), {}
  for i = 1, #stored, 2 do
    local question = unpack_one(stored[i + 1])
    if is_wanted(question) then
      question.id = stored[i]
      found[#found + 1] = question
    end
  end
  table.sort(found, function(a, b)
    if a[ASKED_AT] ~= b[ASKED_AT] then
      return a[ASKED_AT] < b[ASKED_AT]
    end
    return bytes_before(a.id, b.id)
  end)
  return found
end

local function drop_question(id)
  hset('$questions', id, false)
  hset('$answers', id, false)
end
