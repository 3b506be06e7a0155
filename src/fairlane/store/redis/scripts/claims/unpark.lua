-- uses: claims/choose
-- Unpark in one queue what a claim of it would unpark (S42, S43), step by step.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the queue; [3] the unpark pass of the step before, or ''.
-- Reply: the unpark pass ('' at the end), whether a bound was met, and when time alone makes the next job claimable,
-- or 0.
local queue, unpark_pass = load_queue(ARGV[2]), ARGV[3] == '' and new_unpark_pass() or unpack_one(ARGV[3])
local before = unpark_pass.unparks_left
local is_done = run_unpark_pass(queue, unpark_pass, UNPARK_STEP)
if unpark_pass.unparks_left < before then
  hint_queue(queue.name)
end
local due = next_due({queue.name})
commit()
return {is_done and '' or pack(unpark_pass), unpark_pass.is_partial and 1 or 0, due}
