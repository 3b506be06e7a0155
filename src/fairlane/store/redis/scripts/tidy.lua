-- uses: rules records lines strands turns parking
-- Tidy: forget the clocks of tenants that have nothing and owe nothing (S41). ARGV: how many to look at; a pass goes on
-- where the one before stopped, and then from the start.
local start, most = look('$meta', 'tidied') or '', tonumber(ARGV[2])
local names = call('ZRANGE', P .. '$queues_tenants', '(' .. start, '+', 'BYLEX', 'LIMIT', 0, most)
for _, name in ipairs(names) do
  local queue, tenant = name:match('^(%Z*)%z(.*)$')
  local turn = turn_named(queue_named(queue), tenant)
  if is_needless(turn) then
    touch(turn)
  end
end
put('$meta', 'tidied', #names == most and names[#names])
commit()
