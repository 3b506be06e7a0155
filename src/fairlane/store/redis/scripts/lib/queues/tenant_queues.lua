-- uses: queues/tenant_queue_record queues/ready_index queues/strands limits/policies
-- Queues and the tenant queues in them: which tenant is served next (S41, S42). Only `update_ready` decides whether a
-- tenant queue is in the ready index. Hashes `queues`, `tenant_queues` by queue and `meta`; sorted sets
-- `not_running_index`, `running_index` and `parked_until` by queue, and `tenant_queue_names`.

local queues = {}

local function load_queue(name)
  local queue = queues[name]
  if not queue then
    local stored = hget('$queues', name)
    local fields = stored and unpack_one(stored) or {VT_ZERO, 0, 0, 0, {}, {}}
    local upper, lower, delayed, ready, changed_groups, generations = unpack(fields)
    queue = {
      name = name, stored = stored, tenant_queues = {}, upper = upper, lower = lower, floor = 0,
      delayed = delayed, ready = ready, changed_groups = changed_groups, generations = generations,
      subject = 'queue ' .. name, limits = false, stride = false, rules = false, moved = {}, from_last_script = EMPTY,
    }
    queue.by_vt = by_vt(queue)
    queue.not_running_index = new_ready_index(queue, '$not_running_index' .. name)
    queue.running_index = new_ready_index(queue, '$running_index' .. name)
    queue.parked_until = sorted_set('$parked_until' .. name)
    queues[name] = queue
  end
  return queue
end

-- ── reading ──────────────────────────────────────────────────────────────────

local function parse_tenant_queue(queue, tenant, stored)
  local tenant_queue, upper, lower, size = read_tenant_queue(stored or NEW_TENANT_QUEUE)
  tenant_queue.queue, tenant_queue.tenant, tenant_queue.stored = queue, tenant, stored
  tenant_queue.vt = vt_of(queue, upper, lower)
  if tenant_queue.open_strands > 0 and not tenant_queue.parked then
    tenant_queue.is_ready, tenant_queue.was_index = true, ready_index_of(queue, tenant_queue)
  end
  if size then
    make_wide(tenant_queue, size)
    tenant_queue.strands = stored_strands(tenant_queue.wide.key)
  end
  queue.tenant_queues[tenant] = tenant_queue
  return tenant_queue
end

local function load_tenant_queues(queue, tenants)
  local unknown, tenant_queues = {}, queue.tenant_queues
  for _, tenant in ipairs(tenants) do
    if tenant_queues[tenant] == nil then
      tenant_queues[tenant] = false
      unknown[#unknown + 1] = tenant
    end
  end
  local found = hmget('$tenant_queues' .. queue.name, unknown)
  for i, tenant in ipairs(unknown) do
    parse_tenant_queue(queue, tenant, found[i])
  end
end

local function tenant_queue_named(queue, tenant)
  local tenant_queue = queue.tenant_queues[tenant]
  if not tenant_queue then
    tenant_queue = parse_tenant_queue(queue, tenant, hget('$tenant_queues' .. queue.name, tenant))
  end
  return tenant_queue
end

local function tenant_rate_state(tenant_queue)
  tenant_queue.rate_state = tenant_queue.rate_state or {0, ''}
  return tenant_queue.rate_state
end

-- ── moving ───────────────────────────────────────────────────────────────────

local function mark_changed(tenant_queue)
  tenant_queue.is_changed = true
end

-- Note that a tenant queue has another place in the index, or none. It is written at the end, and sorted in when the
-- index is read: once, however often it has moved until then.
local function mark_moved(tenant_queue)
  if not tenant_queue.is_ready then
    tenant_queue.is_moved = tenant_queue.is_moved or true
  elseif tenant_queue.is_moved ~= 'unsorted' then
    tenant_queue.is_moved = 'unsorted'
    local moved = tenant_queue.queue.moved
    moved[#moved + 1] = tenant_queue
  end
end

local function sort_moved(queue)
  local moved = queue.moved
  for i = 1, #moved do
    local tenant_queue = moved[i]
    ready_index_of(queue, tenant_queue):insert(tenant_queue)
    moved[i], tenant_queue.is_moved = nil, true
  end
end

-- Return the first entry (vt, ready since, tenant) of both indexes, and its index. `idle_only`: only of tenants with
-- nothing running in this queue.
local function first_tenant_queue(queue, idle_only)
  if queue.moved[1] then
    sort_moved(queue)
  end
  local idle, running = queue.not_running_index:first(), not idle_only and queue.running_index:first() or nil
  if running and (not idle or entry_before(running, idle)) then
    return running, queue.running_index
  end
  return idle, queue.not_running_index
end

-- Return the virtual time of a queue: the lowest vt of a ready tenant, at least the floor.
local function virtual_now(queue)
  local lowest = first_tenant_queue(queue)
  return lowest and math.max(queue.floor, lowest[SCORE]) or queue.floor
end

local sequence

local function next_sequence()
  if not sequence then
    sequence = tonumber(hget('$meta', 'sequence') or 0)
  end
  sequence = sequence + 1
  hset('$meta', 'sequence', sequence)
  return sequence
end

local leave_wait_sets -- in parking.lua

-- Let a tenant queue enter or leave the ready index, as its jobs and parks say. One that enters starts at the virtual
-- time at least (S41): it gets no credit for the time it was away.
local function update_ready(tenant_queue)
  if tenant_queue[READY] == 0 then
    tenant_queue.since = 0
    if tenant_queue.parked then
      leave_wait_sets(tenant_queue, '', tenant_queue.parked)
      tenant_queue.parked = false
    end
  elseif tenant_queue.since == 0 then
    tenant_queue.since = next_sequence()
  end
  local is_ready = not tenant_queue.parked and tenant_queue.open_strands > 0
  if is_ready and not tenant_queue.is_ready then
    tenant_queue.vt = math.max(tenant_queue.vt, virtual_now(tenant_queue.queue))
  end
  tenant_queue.is_ready = is_ready
  mark_moved(tenant_queue)
  mark_changed(tenant_queue)
end

local function charge(tenant_queue, amount)
  tenant_queue.vt = tenant_queue.vt + amount
  mark_moved(tenant_queue)
  mark_changed(tenant_queue)
end

-- As `fairness.charge`. Seconds and the rest apart: their product would be beyond 2^53.
local function charge_for(stride, cost)
  local seconds, rest = floor(cost / 1000000), cost % 1000000
  return math.max(1, stride * seconds + floor((stride * rest + 500000) / 1000000))
end

-- ── ready jobs ───────────────────────────────────────────────────────────────

local function insert_ready(tenant_queue, task, strand, key, id)
  if before_head(key, id, strand) then
    insert_behind_head(tenant_queue, task, strand[HEAD_KEY], strand[HEAD_ID])
    set_strand_head(tenant_queue, task, strand, key, id)
  else
    insert_behind_head(tenant_queue, task, key, id)
  end
end

local function add_ready(tenant_queue, task, key, id)
  local strand = strand_of(tenant_queue, task)
  if strand[READY_COUNT] == 0 then
    strand[HEAD_KEY], strand[HEAD_ID] = key, id
    open_strand(tenant_queue, task, strand)
  else
    insert_ready(tenant_queue, task, strand, key, id)
  end
  strand[READY_COUNT] = strand[READY_COUNT] + 1
  tenant_queue[READY] = tenant_queue[READY] + 1
  tenant_queue.queue.ready = tenant_queue.queue.ready + 1
  if tenant_queue.is_ready then
    mark_changed(tenant_queue) -- it has its place already
  else
    update_ready(tenant_queue)
  end
end

local function remove_ready(tenant_queue, task, id)
  local strand = tenant_queue.strands[task]
  strand[READY_COUNT] = strand[READY_COUNT] - 1
  tenant_queue[READY] = tenant_queue[READY] - 1
  tenant_queue.queue.ready = tenant_queue.queue.ready - 1
  if strand[READY_COUNT] == 0 then
    if strand[PARKED] then
      leave_wait_sets(tenant_queue, task, strand[PARKED])
      strand[PARKED] = false
    else
      close_strand(tenant_queue, task, strand)
    end
    strand[HEAD_KEY], strand[HEAD_ID] = 0, NO_ID
  elseif strand[HEAD_ID] == id then
    advance_head(tenant_queue, task, strand)
  else
    remove_behind_head(tenant_queue, task, id)
  end
  update_ready(tenant_queue)
end

-- Give a ready job another place. Its tenant stays ready throughout and keeps its place in the index.
local function move_ready(tenant_queue, task, key, id)
  local strand = tenant_queue.strands[task]
  if strand[READY_COUNT] == 1 then
    set_strand_head(tenant_queue, task, strand, key, id)
  else
    if strand[HEAD_ID] == id then
      advance_head(tenant_queue, task, strand)
    else
      remove_behind_head(tenant_queue, task, id)
    end
    insert_ready(tenant_queue, task, strand, key, id)
  end
  mark_changed(tenant_queue)
end

-- ── writing ──────────────────────────────────────────────────────────────────

-- Return whether nothing would be lost with the record: it has no job, its vt is not above the floor, and its rate is in
-- the past.
local function is_removable(tenant_queue)
  local rate_state = tenant_queue.rate_state
  if tenant_queue.vt > tenant_queue.queue.floor or (rate_state and rate_state[NEXT_ALLOWED_AT] > NOW) then
    return false
  end
  for state = 1, STATES do
    if tenant_queue[state] > 0 then
      return false
    end
  end
  return true
end

-- Write the place in the index, if it has changed.
local function write_index_place(queue, tenant_queue, record)
  local index, was = tenant_queue.is_ready and ready_index_of(queue, tenant_queue), tenant_queue.was_index
  local place = index and record:sub(1, INDEX_PLACE_SIZE) .. tenant_queue.tenant
  local before = was and tenant_queue.stored:sub(1, INDEX_PLACE_SIZE) .. tenant_queue.tenant
  if index ~= was or place ~= before then
    if was then
      zrem(was.name, before)
    end
    if index then
      zadd(index.name, 0, place)
    end
  end
end

-- Return the record; the strands of a wide tenant queue go into their hash.
local function pack_record(queue, tenant_queue)
  local upper, lower = vt_words(queue, tenant_queue.vt)
  if not tenant_queue.wide then
    local record = pack_tenant_queue(tenant_queue, upper, lower)
    if record then
      return record
    end
    move_strands_to_hash(tenant_queue)
  end
  write_strands(tenant_queue)
  return pack_wide_tenant_queue(tenant_queue, upper, lower)
end

local function write(queue, tenant_queue)
  if tenant_queue.wide and tenant_queue.wide.size * 2 <= MAX_INLINE_STRANDS then
    move_strands_to_record(tenant_queue)
  end
  local tenant, record = tenant_queue.tenant, pack_record(queue, tenant_queue)
  if tenant_queue.is_moved then
    write_index_place(queue, tenant_queue, record)
  end
  if is_removable(tenant_queue) then
    hset('$tenant_queues' .. queue.name, tenant, false)
    zrem('$tenant_queue_names', queue.name .. '\0' .. tenant)
    return
  end
  add_new('HSET', '$tenant_queues' .. queue.name, tenant, record)
  if not tenant_queue.stored then
    zadd('$tenant_queue_names', 0, queue.name .. '\0' .. tenant)
  end
end

before_commit[#before_commit + 1] = function()
  for name, queue in pairs(queues) do
    for _, tenant_queue in pairs(queue.tenant_queues) do
      if tenant_queue.is_changed then
        write(queue, tenant_queue)
      end
    end
    local upper, lower = vt_words(queue, queue.floor)
    local fields = pack({upper, lower, queue.delayed, queue.ready, queue.changed_groups, queue.generations})
    if fields ~= queue.stored then
      hset('$queues', name, fields)
    end
  end
end
