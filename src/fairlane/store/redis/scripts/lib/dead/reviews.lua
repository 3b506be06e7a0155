-- uses:
-- The reviews of jobs: only a dead one can have any.

-- Return the reviews by the numbers of the jobs, false for none; `heads` are packed, or false.
local function reviews_of(ids, heads)
  local dead, numbers, found = {}, {}, {}
  for i, head in ipairs(heads) do
    found[i] = false
    if head and byte(head, 2) == DEAD then -- STATE is its second byte
      dead[#dead + 1], numbers[#numbers + 1] = ids[i], i
    end
  end
  for i, review in ipairs(hmget('$reviews', dead)) do
    found[numbers[i]] = review
  end
  return found
end
