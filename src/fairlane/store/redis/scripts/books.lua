-- uses: records
-- Books: the counts that are kept of (queue, tenant), in the order of one of the two. ARGV: the set that has this
-- order, the first and the last name as BYLEX takes them, how many, 'tasks' or ''. Gives for each the two names, the
-- counts in the order of the states, and the tasks of unfinished jobs if they are asked for.
local by_tenant = ARGV[2] == '$tenants_queues'
local names = call('ZRANGE', P .. ARGV[2], ARGV[3], ARGV[4], 'BYLEX', 'LIMIT', 0, ARGV[5])
local found = {}
for i, name in ipairs(names) do
  local one, other = name:match('^(%Z*)%z(.*)$')
  local queue, tenant = one, other
  if by_tenant then
    queue, tenant = other, one
  end
  local stored = call('HGET', P .. '$turns' .. queue, tenant)
  local counts, tasks = {0, 0, 0, 0, 0, 0}, {}
  if stored then
    local _, _, _, kept, strands = read_turn(stored)
    counts = kept
    for task in pairs(ARGV[6] == 'tasks' and strands or {}) do
      tasks[#tasks + 1] = task
    end
  end
  found[i] = {one, other, counts, tasks}
end
return found
