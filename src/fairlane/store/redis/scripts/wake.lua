-- uses: rules records lines turns parking blocks homes handout
-- Wake: bring back in one queue what a claim of it would bring back (S42, S43). ARGV: the queue. Gives whether there is
-- more, and when time alone makes the next job claimable, or 0.
local queue, waking = queue_named(ARGV[2]), {left = WAKE_MOST, is_partial = false}
wake(queue, waking)
if waking.left < WAKE_MOST then
  hint(queue.name)
end
local due = next_due({queue.name})
commit()
return {waking.is_partial and 1 or 0, due}
