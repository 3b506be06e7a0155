-- uses: jobs/job_head jobs/idempotency queues/parking
-- Jobs, and all that follows when one changes its state: counts, sets, keys, its tenant queue (S50). A job is one
-- field in each of four hashes: `heads` (job_head.lua), `bodies`, `attempts` (ended ones) and `results`. Sorted
-- sets list what a state needs: `delayed` by queue, `leases`, `expiries` of waiting jobs, `finished` by state; and
-- for reading `all`, `by_tenant` and `by_correlation`. `cancel_asked` lists running jobs, `results_kept` those with a
-- result.

local heads = {} -- by id, as this script has read or changed them; false if there is no such job

local function load_heads(ids)
  if next(heads) == nil then
    local found = hmget('$heads', ids)
    for i, id in ipairs(ids) do
      heads[id] = found[i] and read_head(found[i])
    end
    return
  end
  local unknown = {}
  for _, id in ipairs(ids) do
    if heads[id] == nil then
      heads[id] = false
      unknown[#unknown + 1] = id
    end
  end
  local found = hmget('$heads', unknown)
  for i, id in ipairs(unknown) do
    heads[id] = found[i] and read_head(found[i]) or false
  end
end

local function head_of(id)
  if heads[id] == nil then
    load_heads({id})
  end
  return heads[id]
end

breakers.is_running = function(id)
  local head = head_of(id)
  return head and head[STATE] == RUNNING
end

local function copy_head(head)
  return {unpack(head, 1, HEAD_FIELDS)}
end

local function put_head(id, head)
  heads[id] = head
  add_new('HSET', '$heads', id, write_head(head))
end

local function tenant_queue_of(head)
  return tenant_queue_named(load_queue(head[QUEUE]), head[TENANT])
end

local function sort_key(head)
  return head[RUN_AT] - head[PRIORITY] * STEP
end

local function is_waiting(state)
  return state == DELAYED or state == READY
end

local function is_finished(state)
  return not is_waiting(state) and state ~= RUNNING
end

-- ── entering and leaving a state ─────────────────────────────────────────────

local function enter_waiting(id, tenant_queue, task, state, run_at, priority, expires_at)
  local queue = tenant_queue.queue
  if state == READY then
    add_ready(tenant_queue, task, run_at - priority * STEP, id)
  else
    tenant_queue[DELAYED] = tenant_queue[DELAYED] + 1
    zadd('$delayed' .. queue.name, run_at, id)
    queue.delayed = queue.delayed + 1
    mark_changed(tenant_queue)
  end
  if expires_at > 0 then
    zadd('$expiries', expires_at, id)
  end
end

local function enter_state(id, head, tenant_queue)
  local state = head[STATE]
  if is_waiting(state) then
    enter_waiting(id, tenant_queue, head[TASK], state, head[RUN_AT], head[PRIORITY], head[EXPIRES_AT])
    return
  end
  tenant_queue[state] = tenant_queue[state] + 1
  if state == RUNNING then
    zadd('$leases', head[LEASE_UNTIL], id)
    mark_moved(tenant_queue)
  else
    zadd('$finished' .. state, head[SETTLED_AT], id)
    count_finished(tenant_queue, head[TASK])
  end
  mark_changed(tenant_queue)
end

local function leave_state(id, head, tenant_queue)
  local state, queue = head[STATE], tenant_queue.queue
  if head[EXPIRES_AT] > 0 and is_waiting(state) then
    sorted_set('$expiries'):remove(id)
  end
  if state == READY then
    remove_ready(tenant_queue, head[TASK], id)
    return
  end
  tenant_queue[state] = tenant_queue[state] - 1
  if state == DELAYED then
    sorted_set('$delayed' .. queue.name):remove(id)
    queue.delayed = queue.delayed - 1
  elseif state == RUNNING then
    zrem('$leases', id)
    mark_moved(tenant_queue)
  else
    zrem('$finished' .. state, id)
  end
  mark_changed(tenant_queue)
end

-- ── changes ──────────────────────────────────────────────────────────────────

-- Charge the time that an attempt really took; at a renewal only what is beyond the charge so far.
local function charge_time(tenant_queue, head, is_final)
  local charged, seen = head[CHARGED], NOW - head[STARTED_AT]
  if charged < 0 or (not is_final and seen <= charged) then
    return
  end
  local stride = stride_of(tenant_queue)
  charge(tenant_queue, charge_for(stride, seen) - charge_for(stride, charged))
  head[CHARGED] = seen
end

-- Give back what a claim has charged, with what renewals added (S68). No vt is below 0 by it: the weight of the tenant
-- may have fallen since.
local function refund(tenant_queue, head)
  local stride, charged = stride_of(tenant_queue), head[CHARGED]
  local amount, zero = charged < 0 and stride or charge_for(stride, charged), vt_of(tenant_queue.queue, VT_ZERO, 0)
  charge(tenant_queue, math.max(-amount, zero - tenant_queue.vt))
end

-- Give back what a claim held: its slot at the gate, its tenant's place under the running limit.
local function release(gate, tenant_queue)
  if tenant_queue.parked and tenant_queue.parked[REASON] == 'running_limit' then
    unpark(tenant_queue, '')
  end
  if gate ~= '' then
    change_gate_use(gate, -1)
    hint_gate_queues(gate)
  end
  if tenant_queue.queue.ready + tenant_queue.queue.delayed > 0 then -- else there is nothing to claim
    hint_queue(tenant_queue.queue.name)
  end
end

-- Write what a job has become, with everything that follows from its new state.
local function change_job(id, before, after)
  local tenant_queue = tenant_queue_of(after)
  local was, is = before[STATE], after[STATE]
  if was == RUNNING and is ~= RUNNING then
    charge_time(tenant_queue, before, true)
    if before[IS_CANCEL_ASKED] == 1 then
      sorted_set('$cancel_asked'):remove(id)
    end
    after[GATE], after[CHARGED] = '', -1
  end
  if was ~= is then
    leave_state(id, before, tenant_queue)
    enter_state(id, after, tenant_queue)
    if is_finished(is) then
      keys.finish(id, before, after)
    end
  elseif is_waiting(is) then
    if is == READY then
      move_ready(tenant_queue, after[TASK], sort_key(after), id)
    else
      sorted_set('$delayed' .. tenant_queue.queue.name):add(after[RUN_AT], id)
    end
    if after[EXPIRES_AT] > 0 then
      sorted_set('$expiries'):add(after[EXPIRES_AT], id)
    elseif before[EXPIRES_AT] > 0 then
      sorted_set('$expiries'):remove(id)
    end
  end
  put_head(id, after)
  if was == RUNNING and is ~= RUNNING then
    release(before[GATE], tenant_queue)
  elseif is == RUNNING and after[IS_CANCEL_ASKED] == 1 then
    sorted_set('$cancel_asked'):add(0, id)
    hint_worker(after[WORKER])
  end
end

-- Remove a finished job and all that points to it, except its idempotency key.
local function delete_job(id, head)
  leave_state(id, head, tenant_queue_of(head))
  for _, key in ipairs({'$all', '$by_tenant' .. head[TENANT]}) do
    sorted_set(key):remove(id)
  end
  if head[CORRELATION_ID] ~= '' then
    sorted_set('$by_correlation' .. head[CORRELATION_ID]):remove(id)
  end
  for _, key in ipairs({'$heads', '$bodies', '$attempts', '$results'}) do
    hset(key, id, false)
  end
  sorted_set('$results_kept'):remove(id)
  heads[id] = false
end
