-- uses: claims/choose
-- Make due delayed jobs of all queues ready, earliest first.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many at most.
-- Reply: how many there were, and whether there are more.
local names, limit, count = call('HKEYS', PREFIX .. '$queues'), tonumber(ARGV[2]), 0

local function first_due()
  local chosen, first
  for _, name in ipairs(names) do
    local entry = sorted_set('$delayed' .. name):first()
    if entry and entry[SCORE] <= NOW and (not first or entry_before(entry, first)) then
      chosen, first = name, entry
    end
  end
  return chosen
end

local name = first_due()
while name and count < limit do
  promote_due(load_queue(name), 1)
  hint_queue(name)
  count, name = count + 1, first_due()
end
commit()
return {count, name and 1 or 0}
