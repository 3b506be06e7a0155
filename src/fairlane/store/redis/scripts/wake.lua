-- uses: rules records lines strands turns parking blocks homes handout
-- Wake: bring back in one queue what a claim of it would bring back (S42, S43), step by step. ARGV: the queue, the carry
-- of the step before or ''. Gives the carry ('' at the end), whether there is more than a claim may wake, and when time
-- alone makes the next job claimable, or 0.
local queue, waking = queue_named(ARGV[2]), ARGV[3] == '' and begin_waking() or unpack_one(ARGV[3])
local before = waking.left
local is_done = wake(queue, waking, WAKE_STEP)
if waking.left < before then
  hint(queue.name)
end
local due = next_due({queue.name})
commit()
return {is_done and '' or pack(waking), waking.is_partial and 1 or 0, due}
