-- uses: rules records lines turns parking blocks homes handout
-- Peek: claim for nobody, as often as one claim's bounds demand, and write nothing (S65). ARGV: queue, how many,
-- the tenant as if whom no other had any, or ''. Gives ids.
local name, most, only = ARGV[2], tonumber(ARGV[3]), ARGV[4] ~= '' and ARGV[4] or nil
local ids, is_more = {}, true
while is_more and #ids < most do
  local left = most - #ids
  local request = {wishes = {{name, left}}, total = left, headroom = 0}
  local carry = begin_claim()
  local served, is_done
  repeat
    served, is_done = hand_out(request, carry, DUE_MOST + 1, only)
    for _, id in ipairs(served) do
      ids[#ids + 1] = id
    end
  until is_done
  is_more = is_partial(request, carry)
end
return ids
