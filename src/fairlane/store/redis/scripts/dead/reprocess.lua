-- uses: jobs/admission dead/letters
-- Store new jobs in place of dead ones, and note it in the letters: each letter is a step of its own (S75).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the new jobs, packed (NEW_JOB_FORMAT); then six for each: id of the letter, its head and its review as they
-- were read, the new review, what the letter becomes (lib/dead/letters.lua), and the entries of the journals, packed.
-- Reply: for each 1 if it was done, 0 if the letter has changed since it was read, or why the job was refused.
local new_jobs, answers = read_new_jobs(ARGV[2]), {}

local function reprocess(i, new, id, head, review, new_review, change, entries)
  if hget('$heads', id) ~= head or (hget('$reviews', id) or '') ~= review then
    return 0
  end
  local refused, repeats = outcome.refused, outcome.repeats
  local refusals, answered = #refused, #repeats
  admit(i, new, {is_without_limits = true})
  if #repeats > answered then
    refuse(i, 'duplicate', '', repeats[#repeats][2])
  end
  if #refused > refusals then
    return refused[#refused]
  end
  hset('$reviews', id, new_review)
  letters.put(id, change, read_head(head)[SETTLED_AT])
  journal.append_all(entries)
  return 1
end

load_admission(new_jobs)
for i, new in ipairs(new_jobs) do
  answers[i] = reprocess(i, new, unpack(ARGV, 6 * i - 3, 6 * i + 2))
end
commit()
return answers
