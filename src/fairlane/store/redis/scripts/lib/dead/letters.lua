-- uses: dead/deaths
-- What the store notes of a dead letter beside the job itself (S75). `letters` has by id what filters compare
-- (LETTER_FORMAT), `reviews` what people decided. `letter_counts` counts by queue and tenant those that are not pending;
-- `decided` and `decided_by_death` list those whose review has ended, `new_runs` those in whose place another job runs.
-- A letter of an older version has none of it and is pending: whoever reads it notes it (dead/scanning.py).

local letters = {}

local function count_letter(queue, tenant, review, change)
  if review == LETTER_IS_PENDING then
    return -- what is dead and not counted here is pending
  end
  local name = queue .. '\0' .. tenant
  local stored = hget('$letter_counts', name)
  local counts, total = stored and {struct.unpack(LETTER_COUNTS_FORMAT, stored)} or {}, 0
  for i = 1, LETTER_COUNTS do
    counts[i] = counts[i] or 0
    if i == review - LETTER_IS_PENDING then
      counts[i] = counts[i] + change
    end
    total = total + counts[i]
  end
  hset('$letter_counts', name, total > 0 and struct.pack(LETTER_COUNTS_FORMAT, unpack(counts, 1, LETTER_COUNTS)))
end

-- Forget what the letter was: its place in counts and sets.
local function take_out(id)
  local stored = hget('$letters', id)
  if not stored then
    return
  end
  local was = {struct.unpack(LETTER_FORMAT, stored)}
  local review = was[LETTER_REVIEW]
  if review == LETTER_IS_PENDING then
    return
  end
  count_letter(was[LETTER_QUEUE], was[LETTER_TENANT], review, -1)
  if review == LETTER_IS_REPROCESSED then
    for _, run in ipairs(call('ZRANGE', PREFIX .. '$new_runs', '[' .. id, '(' .. id .. ('\255'):rep(17), 'BYLEX')) do
      zrem('$new_runs', run)
    end
  else
    zrem('$decided', id)
    zrem('$decided_by_death', id)
  end
end

-- Note what a letter has become (`write_change` in records/letter.py) of a job that died at an instant.
function letters.put(id, change, died_at)
  local decided_at, run, first = struct.unpack(LETTER_CHANGE_FORMAT, change)
  local letter = change:sub(first)
  local is = {struct.unpack(LETTER_FORMAT, letter)}
  take_out(id)
  count_letter(is[LETTER_QUEUE], is[LETTER_TENANT], is[LETTER_REVIEW], 1)
  if run ~= NO_ID then
    zadd('$new_runs', 0, id .. run)
  end
  if decided_at > 0 then
    zadd('$decided', decided_at, id)
    zadd('$decided_by_death', died_at, id)
  end
  hset('$letters', id, letter)
  return is
end

function letters.remove(id)
  take_out(id)
  hset('$letters', id, false)
  hset('$reviews', id, false)
end
