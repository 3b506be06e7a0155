-- uses: queues/tenant_queue_record
-- Return the counts of tenant queues, by queue and in the order of tenants.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the queue or '' for all; [3], [4] tenant and queue of the position to start at, in the order of these
-- two; [5] '(' to start after it; [6] the only tenant or ''; [7] about how many; [8] 'tasks' to name tasks, 'reviews' to
-- count the reviews of dead letters, or ''.
-- Reply: for each queue its name, whether it has more, and its tenant queues: tenant, the counts in the order of the
-- states, the tasks of unfinished jobs (nil if it is wide), the packed counts of letters that are not pending or nil.
local from, at_queue, bracket, only_tenant, has_tasks = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8] == 'tasks'
local queues = ARGV[2] ~= '' and {ARGV[2]} or call('HKEYS', PREFIX .. '$queues')
local limit = math.max(8, math.ceil(ARGV[7] / #queues))

local function tenants_in(queue)
  local first, last = queue .. '\0' .. from, '(' .. queue .. '\1'
  local is_after = queue == at_queue and bracket == '(' or bytes_before(queue, at_queue)
  first = (is_after and '(' or '[') .. first
  if only_tenant ~= '' then
    first, last = '[' .. queue .. '\0' .. only_tenant, '[' .. queue .. '\0' .. only_tenant
  end
  local tenants = call('ZRANGE', PREFIX .. '$tenant_queue_names', first, last, 'BYLEX', 'LIMIT', 0, limit)
  for i, name in ipairs(tenants) do
    tenants[i] = name:sub(#queue + 2)
  end
  return tenants
end

local function counts_of(queue)
  local tenants, rows = tenants_in(queue), {}
  local found, names = hmget('$tenant_queues' .. queue, tenants), {}
  for i, tenant in ipairs(ARGV[8] == 'reviews' and tenants or EMPTY) do
    names[i] = queue .. '\0' .. tenant
  end
  local reviews = hmget('$letter_counts', names)
  for i, tenant in ipairs(tenants) do
    local counts, tasks = {0, 0, 0, 0, 0, 0}, {}
    if found[i] then
      local tenant_queue, _, _, size = read_tenant_queue(found[i])
      counts, tasks = {unpack(tenant_queue, 1, STATES)}, not size and tasks
      for task in pairs(has_tasks and tasks and tenant_queue.strands or {}) do
        tasks[#tasks + 1] = task
      end
    end
    rows[i] = {tenant, counts, tasks, reviews[i] or false}
  end
  return {queue, #tenants == limit and 1 or 0, rows}
end

local reply = {}
for i, queue in ipairs(queues) do
  reply[i] = counts_of(queue)
end
return reply
