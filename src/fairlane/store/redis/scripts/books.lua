-- uses: records
-- Books: the counts that are kept of tenants in queues. ARGV: the queue, or '' for all; a tenant and a queue, from where
-- on in the order of these two; '(' if not that place itself; the one tenant to read of, or ''; how many, about; 'tasks'
-- or ''. Gives of each queue its name, whether it has more, and its next books in the order of tenants: the tenant, the
-- counts in the order of the states, and the tasks of unfinished jobs if they are asked for: nil of a wide turn.
local from, at_queue, mark, only, has_tasks = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8] == 'tasks'
local queues = ARGV[2] ~= '' and {ARGV[2]} or call('HKEYS', P .. '$queues')
local most = math.max(8, math.ceil(ARGV[7] / #queues))

local function tenants_in(queue)
  local first, last = queue .. '\0' .. from, '(' .. queue .. '\1'
  local is_after = queue == at_queue and mark == '(' or is_before(queue, at_queue)
  first = (is_after and '(' or '[') .. first
  if only ~= '' then
    first, last = '[' .. queue .. '\0' .. only, '[' .. queue .. '\0' .. only
  end
  local tenants = call('ZRANGE', P .. '$queues_tenants', first, last, 'BYLEX', 'LIMIT', 0, most)
  for i, name in ipairs(tenants) do
    tenants[i] = name:sub(#queue + 2)
  end
  return tenants
end

local function books_of(queue)
  local tenants, books = tenants_in(queue), {}
  local found = read_fields('$turns' .. queue, tenants)
  for i, tenant in ipairs(tenants) do
    local counts, tasks = {0, 0, 0, 0, 0, 0}, {}
    if found[i] then
      local turn, _, _, size = read_turn(found[i])
      counts, tasks = {unpack(turn, 1, STATES)}, not size and tasks
      for task in pairs(has_tasks and tasks and turn.strands or {}) do
        tasks[#tasks + 1] = task
      end
    end
    books[i] = {tenant, counts, tasks}
  end
  return {queue, #tenants == most and 1 or 0, books}
end

local reply = {}
for i, queue in ipairs(queues) do
  reply[i] = books_of(queue)
end
return reply
