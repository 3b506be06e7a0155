-- uses: jobs/state_changes journal
-- Compare what is derived from the unfinished jobs of a tenant queue with their heads, and make it anew (S90). The caller has
-- collected the ids page by page; jobs that came in since then are read here.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] queue, [3] tenant, [4] '1' to restore, [5] how many jobs at most, [6] the ids, [7] enqueue of the newest of them,
-- [8] the entry of the audit, packed.
-- Reply: how many jobs, or -1 if there are too many; a list with four for each flaw: the state, or 0 for the order, stored, right, id or ''.
local queue_name, tenant, limit = ARGV[2], ARGV[3], tonumber(ARGV[5])
local queue = load_queue(queue_name)
local tenant_queue = tenant_queue_named(queue, tenant)
local jobs, counts, tasks, flaws = {}, {[DELAYED] = 0, [READY] = 0, [RUNNING] = 0}, {}, {}

local function note(state, stored, right, id)
  for _, value in ipairs({state, stored, right, id or ''}) do
    flaws[#flaws + 1] = value
  end
end

-- ── the jobs ─────────────────────────────────────────────────────────────────

local function task_of(name)
  tasks[name] = tasks[name] or {jobs = 0, ready = {}, is_ready = false}
  return tasks[name]
end

local function collect()
  local ids, seen = split_ids(ARGV[6]), {}
  for _, id in ipairs(ids) do
    seen[id] = true
  end
  for _, id in ipairs(call('ZRANGE', PREFIX .. '$by_tenant' .. tenant, ARGV[7], '+inf', 'BYSCORE')) do
    if not seen[id] then
      ids[#ids + 1] = id
    end
  end
  load_heads(ids)
  for _, id in ipairs(ids) do
    local head = heads[id]
    if head and head[QUEUE] == queue_name and not is_finished(head[STATE]) then
      local task = task_of(head[TASK])
      jobs[#jobs + 1], task.jobs = id, task.jobs + 1
      counts[head[STATE]] = counts[head[STATE]] + 1
      if head[STATE] == READY then
        task.ready[id], task.is_ready = sort_key(head), true
      end
    end
  end
end

-- ── what is stored ───────────────────────────────────────────────────────────

local function all_strands()
  local names = {}
  for name, strand in pairs(tenant_queue.strands) do
    names[name] = strand or nil
  end
  if tenant_queue.wide then
    for _, name in ipairs(call('HKEYS', PREFIX .. tenant_queue.wide.key)) do
      names[name] = tenant_queue.strands[name]
    end
  end
  return names
end

-- The ready jobs of a strand by id: its head, those in its record, and those in its set.
local function line_of(name, strand)
  local line = {}
  if strand and strand[READY_COUNT] > 0 then
    line[strand[HEAD_ID]] = strand[HEAD_KEY]
    for first = strand[PREFETCHED_AT], #strand[PREFETCHED], PREFETCHED_SIZE do
      local id, key = struct.unpack(PREFETCHED_FORMAT, strand[PREFETCHED], first)
      line[id] = key
    end
  end
  local stored = call('ZRANGE', PREFIX .. strand_key(tenant_queue, name), 0, 2 * limit, 'WITHSCORES')
  for i = 1, #stored, 2 do
    line[stored[i]] = tonumber(stored[i + 1])
  end
  return line
end

local function compare_lines(strands)
  local names, is_counted = {}, true
  for name in pairs(strands) do
    names[name] = true
  end
  for name in pairs(tasks) do
    names[name] = true
  end
  for name in pairs(names) do
    local task, strand = tasks[name] or {jobs = 0, ready = {}}, strands[name]
    local line, ready = line_of(name, strand), 0
    for id, key in pairs(task.ready) do
      ready = ready + 1
      if line[id] ~= key then
        note(READY, 0, 1, id)
      end
    end
    for id in pairs(line) do
      if not task.ready[id] then
        note(READY, 1, 0, id)
      end
    end
    if (strand and strand[JOB_COUNT] or 0) ~= task.jobs or (strand and strand[READY_COUNT] or 0) ~= ready then
      is_counted = false
    end
  end
  return is_counted
end

local function has_place()
  local index = tenant_queue.was_index
  local place = index and tenant_queue.stored:sub(1, INDEX_PLACE_SIZE) .. tenant
  return index and call('ZSCORE', PREFIX .. index.name, place) and 1 or 0
end

local function compare()
  for state, right in pairs(counts) do
    if tenant_queue[state] ~= right then
      note(state, tenant_queue[state], right)
    end
  end
  for _, id in ipairs(jobs) do
    local head = heads[id]
    local state = head[STATE]
    local lost = is_waiting(state) and head[EXPIRES_AT] > 0 and not call('ZSCORE', PREFIX .. '$expiries', id)
    if state == DELAYED and (lost or not call('ZSCORE', PREFIX .. '$delayed' .. queue_name, id)) then
      note(DELAYED, 0, 1, id)
    elseif state == RUNNING and not call('ZSCORE', PREFIX .. '$leases', id) then
      note(RUNNING, 0, 1, id)
    elseif state == READY and lost then
      note(READY, 0, 1, id)
    end
  end
  local strands = all_strands()
  local is_counted, could_start = compare_lines(strands), false
  for name, task in pairs(tasks) do
    could_start = could_start or (task.is_ready and not (strands[name] and strands[name][PARKED]))
  end
  local right = could_start and not tenant_queue.parked and 1 or 0
  if has_place() ~= right or not is_counted then
    note(0, has_place(), right)
  end
  return strands
end

-- ── making it anew ───────────────────────────────────────────────────────────

local function empty_set(key)
  local set = sorted_set(key)
  for _, member in ipairs(call('ZRANGE', PREFIX .. key, 0, 2 * limit)) do
    set:remove(member)
  end
end

-- Remove all places of this tenant from an index, also those of a record that was lost: a claim that met one would fail.
-- They are ordered by vt, so each is looked at; only a repair does this.
local function clear_places(index)
  local first, places = 0, nil
  repeat
    places = call('ZRANGE', PREFIX .. index.name, first, first + MAX_ARGUMENTS - 1)
    for _, place in ipairs(places) do
      if place:sub(INDEX_PLACE_SIZE + 1) == tenant then
        zrem(index.name, place)
      end
    end
    first = first + MAX_ARGUMENTS
  until #places < MAX_ARGUMENTS
end

local function forget_strands(strands)
  for name in pairs(tasks) do
    empty_set(strand_key(tenant_queue, name))
  end
  for name, strand in pairs(strands) do
    if strand[PARKED] then
      leave_wait_sets(tenant_queue, name, strand[PARKED])
    end
    empty_set(strand_key(tenant_queue, name))
    tenant_queue.strands[name] = nil
    if tenant_queue.wide then
      tenant_queue.strands[name] = false
    end
  end
  if tenant_queue.wide then
    empty_set('$strand_heads' .. queue_name .. '\0' .. tenant)
    tenant_queue.wide.size = 0
  end
end

local function leave_order()
  if tenant_queue.parked then
    leave_wait_sets(tenant_queue, '', tenant_queue.parked)
    tenant_queue.parked = false
  end
  clear_places(queue.not_running_index)
  clear_places(queue.running_index)
  tenant_queue.was_index = false
  tenant_queue.open_strands, tenant_queue.is_ready = 0, false
  mark_moved(tenant_queue)
end

local function enter_lists(id, head)
  if head[STATE] == DELAYED then
    zadd('$delayed' .. queue_name, head[RUN_AT], id)
  elseif head[STATE] == RUNNING then
    zadd('$leases', head[LEASE_UNTIL], id)
  end
  if is_waiting(head[STATE]) and head[EXPIRES_AT] > 0 then
    zadd('$expiries', head[EXPIRES_AT], id)
  end
end

local function restore(strands)
  local vt, was_ready = tenant_queue.vt, tenant_queue.is_ready
  forget_strands(strands)
  leave_order()
  queue.delayed = math.max(0, queue.delayed + counts[DELAYED] - tenant_queue[DELAYED])
  queue.ready = math.max(0, queue.ready - tenant_queue[READY])
  tenant_queue[DELAYED], tenant_queue[READY], tenant_queue[RUNNING] = counts[DELAYED], 0, counts[RUNNING]
  for _, id in ipairs(jobs) do
    enter_lists(id, heads[id])
  end
  for name, task in pairs(tasks) do
    strand_of(tenant_queue, name)[JOB_COUNT] = task.jobs
    for id, key in pairs(task.ready) do
      add_ready(tenant_queue, name, key, id)
    end
  end
  update_ready(tenant_queue)
  if was_ready then -- it never left the fair order
    tenant_queue.vt = vt
  end
  hint_queue(queue_name)
  journal.append_all(ARGV[8])
  commit()
end

collect()
if #jobs > limit then
  return {-1, {}}
end
local strands = compare()
if ARGV[4] == '1' and #flaws > 0 then
  restore(strands)
end
return {#jobs, flaws}
