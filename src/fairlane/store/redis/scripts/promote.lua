-- uses: rules records lines strands turns parking blocks homes handout
-- Promote: make due delayed jobs of all queues ready, earliest first. ARGV: how many at most. Gives how many there
-- were and whether there are more.
local names, most, count = call('HKEYS', P .. '$queues'), tonumber(ARGV[2]), 0

local function first_due()
  local chosen, first
  for _, name in ipairs(names) do
    local entry = sorted('$delayed' .. name):first()
    if entry and entry[1] <= NOW and (not first or goes_first(entry, first)) then
      chosen, first = name, entry
    end
  end
  return chosen
end

local name = first_due()
while name and count < most do
  promote_due(queue_named(name), 1)
  hint(name)
  count, name = count + 1, first_due()
end
commit()
return {count, name and 1 or 0}
