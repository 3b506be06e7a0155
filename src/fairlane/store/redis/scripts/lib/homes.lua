-- Jobs in their homes, with the counts, keys, lines and turns that follow (S50). A job is a head, which has all
-- that changes (its fields are numbered in rows.py), a body, its ended attempts and its result: one field each
-- in the hashes "h", "b", "a" and "r". Sorted sets list what a state needs: d:<queue> delayed by time, l leases,
-- x expiries of waiting jobs, f:<state> finished by time; and for reading: all, T:<tenant>, C:<correlation>.

local heads = {}

local function know_heads(ids)
  if next(heads) == nil then
    local found = read_fields('$heads', ids)
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
  local found = read_fields('$heads', unknown)
  for i, id in ipairs(unknown) do
    heads[id] = found[i] and read_head(found[i]) or false
  end
end

local function head_of(id)
  if heads[id] == nil then
    know_heads({id})
  end
  return heads[id]
end

local function copy(head)
  return {unpack(head, 1, FIELDS)}
end

local function put_head(id, head)
  heads[id] = head
  append('HSET', '$heads', id, write_head(head))
end

local function turn_of(head)
  return turn_named(queue_named(head[QUEUE]), head[TENANT])
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

-- ── keys ───────────────────────────────────────────────────────────────────

local function free_dedup(id, head)
  if head[DEDUP_KEY] ~= '' then
    local name = head[TENANT] .. '\0' .. head[TASK] .. '\0' .. head[DEDUP_KEY]
    if look('$dedup', name) == id then
      put('$dedup', name, false)
      sorted('$dedup_named'):remove(name)
    end
  end
end

-- Let the keys of a job go that has ended now: the idempotency key lives on for a while, the other is free at
-- once. They are those of the head before: an erased one has none.
local function free_keys(id, head, after)
  if head[IDEMPOTENCY_KEY] ~= '' then
    local name = head[TENANT] .. '\0' .. head[IDEMPOTENCY_KEY]
    local stored = look('$keys', name)
    local holder = stored and unpack_one(stored)
    if holder and holder[1] == id then
      put('$keys', name, pack({id, holder[2], after[STATE], after[SETTLED_AT]}))
      sorted('$keys_ended'):add(after[SETTLED_AT], name)
    end
  end
  free_dedup(id, head)
end

-- ── coming in, leaving, moving ─────────────────────────────────────────────

local task_changes = {}

local function count_task(task, change)
  task_changes[task] = (task_changes[task] or 0) + change
end

flushers[#flushers + 1] = function()
  for task, change in pairs(task_changes) do
    local jobs = tonumber(look('$task_jobs', task) or 0) + change
    put('$task_jobs', task, jobs ~= 0 and jobs)
  end
end

local function enter_waiting(id, turn, task, state, run_at, priority, expires_at)
  local queue = turn.queue
  if state == READY then
    add_ready(turn, task, run_at - priority * STEP, id)
  else
    turn[DELAYED] = turn[DELAYED] + 1
    add('$delayed' .. queue.name, run_at, id)
    queue.delayed = queue.delayed + 1
    touch(turn)
  end
  if expires_at > 0 then
    add('$expiries', expires_at, id)
  end
end

local function enter(id, head, turn)
  local state = head[STATE]
  if is_waiting(state) then
    enter_waiting(id, turn, head[TASK], state, head[RUN_AT], head[PRIORITY], head[EXPIRES_AT])
    return
  end
  turn[state] = turn[state] + 1
  if state == RUNNING then
    add('$leases', head[LEASE_UNTIL], id)
    list(turn)
  else
    add('$finished' .. state, head[SETTLED_AT], id)
    count_out(turn, head[TASK])
  end
  touch(turn)
end

local function leave(id, head, turn)
  local state, queue = head[STATE], turn.queue
  if head[EXPIRES_AT] > 0 and is_waiting(state) then
    sorted('$expiries'):remove(id)
  end
  if state == READY then
    take_ready(turn, head[TASK], id)
    return
  end
  turn[state] = turn[state] - 1
  if state == DELAYED then
    sorted('$delayed' .. queue.name):remove(id)
    queue.delayed = queue.delayed - 1
  elseif state == RUNNING then
    remove('$leases', id)
    list(turn)
  else
    remove('$finished' .. state, id)
  end
  touch(turn)
end

-- Charge the time that an attempt really took; at a renewal only what is beyond the charge so far.
local function charge_time(turn, head, is_final)
  local charged, seen = head[CHARGED], NOW - head[STARTED_AT]
  if charged < 0 or (not is_final and seen <= charged) then
    return
  end
  local stride = stride_of(turn)
  charge(turn, charge_for(stride, seen) - charge_for(stride, charged))
  head[CHARGED] = seen
end

-- Give back what a claim held: its place at the gate, its tenant's place under the running limit.
local function release(gate, turn)
  if turn.parked and turn.parked[1] == 'running_limit' then
    unpark(turn, '')
  end
  if gate ~= '' then
    use_gate(gate, -1)
    hint_at_gate(gate)
  end
  if turn.queue.ready + turn.queue.delayed > 0 then -- else there is nothing to come for
    hint(turn.queue.name)
  end
end

-- Write what a job has become, in the home of its new state.
local function move(id, before, after)
  local turn = turn_of(after)
  local was, is = before[STATE], after[STATE]
  if was == RUNNING and is ~= RUNNING then
    charge_time(turn, before, true)
    if before[IS_CANCEL_ASKED] == 1 then
      sorted('$asked'):remove(id)
    end
    after[GATE], after[IS_ALONE], after[CHARGED] = '', 0, -1
  end
  if was ~= is then
    leave(id, before, turn)
    enter(id, after, turn)
    if is_finished(is) then
      free_keys(id, before, after)
    end
  elseif is_waiting(is) then
    if is == READY then
      shift_ready(turn, after[TASK], sort_key(after), id)
    else
      sorted('$delayed' .. turn.queue.name):add(after[RUN_AT], id)
    end
    if after[EXPIRES_AT] > 0 then
      sorted('$expiries'):add(after[EXPIRES_AT], id)
    elseif before[EXPIRES_AT] > 0 then
      sorted('$expiries'):remove(id)
    end
  end
  put_head(id, after)
  if was == RUNNING and is ~= RUNNING then
    release(before[GATE], turn)
  elseif is == RUNNING and after[IS_CANCEL_ASKED] == 1 then
    sorted('$asked'):add(0, id)
    hint_worker(after[WORKER])
  end
end

-- Remove a finished job altogether.
local function drop(id, head)
  leave(id, head, turn_of(head))
  count_task(head[TASK], -1)
  for _, key in ipairs({'$all', '$by_tenant' .. head[TENANT]}) do
    sorted(key):remove(id)
  end
  if head[CORRELATION_ID] ~= '' then
    sorted('$by_correlation' .. head[CORRELATION_ID]):remove(id)
  end
  for _, key in ipairs({'$heads', '$bodies', '$attempts', '$results'}) do
    put(key, id, false)
  end
  sorted('$results_kept'):remove(id)
  heads[id] = false
end

-- ── attempts ───────────────────────────────────────────────────────────────

local noted = {} -- by id
local last = {}

-- Pack an ended attempt; most that are settled together are alike.
local function pack_attempt(head, outcome, failure, log)
  local number, worker, started_at = head[ATTEMPT], head[WORKER], head[STARTED_AT]
  if last[3] ~= started_at or last[1] ~= number or last[2] ~= worker
    or last[4] ~= outcome or last[5] ~= failure or last[6] ~= log then
    local bytes = '\151' .. pack(number, worker, started_at, NOW, outcome) .. failure .. log
    last = {number, worker, started_at, outcome, failure, log, bytes}
  end
  return last[7]
end

-- Add an ended attempt; `failure` and `log` are packed already. The last ones stay, oldest first (S24).
local function note_attempt(id, head, outcome, failure, log)
  local kept = pack_attempt(head, outcome, failure, log)
  if head[ATTEMPT] > 1 then
    local before = look('$attempts', id) or ''
    if head[ATTEMPT] > ATTEMPTS_KEPT then
      local second = cmsgpack.unpack_one(before, 0)
      before = before:sub(second + 1)
    end
    kept = before .. kept
  end
  noted[id] = kept
  append('HSET', '$attempts', id, kept)
end
