-- uses: journal questions
-- Leave a question for a worker.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the id; [3] the worker; [4] the kind; [5] how long it is valid; [6] the entries of the
-- journals, packed.
-- Reply: 1, or 0 if the worker is not registered.
local id, worker = ARGV[2], ARGV[3]
if hget('$questions', id) then
  return 1
end
if not hget('$heartbeats', worker) then
  return 0
end
local kept = find_questions(function(question)
  return question[ASKED_WORKER] == worker
end)
for i = 1, #kept - MAX_QUESTIONS + 1 do
  drop_question(kept[i].id)
end
hset('$questions', id, pack({worker, ARGV[4], NOW, NOW + ARGV[5], 0}))
journal.append_all(ARGV[6])
commit()
return 1
