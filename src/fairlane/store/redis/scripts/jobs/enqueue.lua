-- uses: jobs/admission
-- Enqueue: store a small batch whole, or nothing of it.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] options, msgpack; [3] the new jobs, packed (NEW_JOB_FORMAT).
-- Reply: the instant, the refusals, the repeats with the jobs that answer for them, who is above a limit, and the
-- correlation ids of jobs that replace a dead one.
local options, new_jobs = unpack_one(ARGV[2]), read_new_jobs(ARGV[3])
load_admission(new_jobs)
for i, new in ipairs(new_jobs) do
  admit(i, new, options)
end
local repeats = existing_jobs(outcome.repeats)
if #outcome.refused == 0 then
  note_creators()
  append_outcome(options.operation)
  commit()
end
return {NOW, outcome.refused, repeats, outcome.over, outcome.linked}
