-- uses: journal jobs/state_changes jobs/job_body limits/policies
-- Admission of new jobs (S12-S18). The checks stand in the order of `admission.admit`; each job sees those before it,
-- also of scripts before this one. `outcome` notes by number in the batch (from 0) what was refused, which job
-- answers for a repeat, who is above a limit, and which correlation id a job got from a dead one it replaces; and for
-- the journals, by tenant and queue who was warned, and which jobs an operation made.
-- Reads `heads`, `keys` and `dedup`; adds to `heads`, `bodies`, `all`, `by_tenant` and `by_correlation`.

-- Unpack new jobs by NEW_JOB_FORMAT (records/layout.py); the field after the last is where the next job begins.
local function read_new_jobs(bytes)
  local new_jobs, at, size = {}, 1, #bytes
  while at <= size do
    local new = {struct.unpack(NEW_JOB_FORMAT, bytes, at)}
    new_jobs[#new_jobs + 1] = new
    at = new[NEW_JOB_NEXT]
  end
  return new_jobs
end

-- ── what the whole batch needs, read at once ─────────────────────────────────

local subject_of = {[NEW_TENANT] = {}, [NEW_QUEUE] = {}, [NEW_TASK] = {}} -- by name
local closed_by = {[NEW_TENANT] = {}, [NEW_QUEUE] = {}, [NEW_TASK] = {}} -- by name: why, or false
local owner_of = {} -- by id: the tenant of the job that has it, or false

local function note_subject(field, kind, name, subjects)
  if not subject_of[field][name] then
    subject_of[field][name] = kind .. name
    subjects[#subjects + 1] = kind .. name
  end
end

local function load_closed()
  for field, subjects in pairs(subject_of) do
    for name, subject in pairs(subjects) do
      local policy = policy_of(subject)
      local is_closed = policy.closed_until and is_in_force(policy.closed_until)
      closed_by[field][name] = is_closed and subject .. ': ' .. policy.closed_because
    end
  end
end

local function load_owners(ids)
  local found = hmget('$heads', ids)
  for i, id in ipairs(ids) do
    owner_of[id] = found[i] and read_head(found[i])[TENANT]
  end
end

local function load_admission(new_jobs)
  local ids, tenants_of, subjects, has_tenants = {}, {}, {EVERYONE}, any_tenant_policy()
  for i, new in ipairs(new_jobs) do
    local queue, tenant = new[NEW_QUEUE], new[NEW_TENANT]
    ids[i] = new[NEW_ID]
    local tenants = tenants_of[queue]
    if not tenants then
      tenants = {}
      tenants_of[queue] = tenants
    end
    tenants[#tenants + 1] = tenant
    if has_tenants then
      note_subject(NEW_TENANT, 'tenant ', tenant, subjects)
    end
    note_subject(NEW_QUEUE, 'queue ', queue, subjects)
    note_subject(NEW_TASK, 'task ', new[NEW_TASK], subjects)
  end
  load_policies(subjects)
  load_closed()
  for name, tenants in pairs(tenants_of) do
    load_tenant_queues(load_queue(name), tenants)
  end
  load_owners(ids)
end

-- ── outcomes ─────────────────────────────────────────────────────────────────

local outcome = {refused = {}, repeats = {}, over = {}, linked = {}, made = {}, warnings = {}, created = {}}
local last_bodies = {} -- of those who are above a limit, by tenant and queue

local function refuse(i, kind, detail, existing, waiting, limit)
  local refused = outcome.refused
  refused[#refused + 1] = {i - 1, kind, detail or '', existing or '', waiting or 0, limit or 0}
end

local function answer_with(i, existing, name)
  local repeats = outcome.repeats
  repeats[#repeats + 1] = {i - 1, existing, name or ''}
end

-- Note a job that is stored above its tenant's limit: {tenant, queue, waiting, limit, how many, created by}.
local function warn(i, new, waiting, limit)
  outcome.over[#outcome.over + 1] = {i - 1, waiting, limit}
  local name = new[NEW_TENANT] .. '\0' .. new[NEW_QUEUE]
  local warning = outcome.warnings[name]
  if not warning then
    warning = {new[NEW_TENANT], new[NEW_QUEUE], 0, 0, 0, false}
    outcome.warnings[name] = warning
  end
  warning[3], warning[4], warning[5] = math.max(warning[3], waiting), limit, warning[5] + 1
  last_bodies[name] = new[NEW_BODY]
end

-- Note who created the last of those who are above a limit: at the end of a script, since reading a body takes a while.
local function note_creators()
  for name, body in pairs(last_bodies) do
    outcome.warnings[name][6] = read_body(body)[BODY_CREATED_BY] or false
  end
end

-- Append to the journals that jobs are stored above a limit, and those that an operation made.
local function append_outcome(operation)
  for _, warning in pairs(outcome.warnings) do
    local tenant, queue, waiting, limit, count, created_by = unpack(warning)
    journal.append('events', pack({'over', tenant, queue, waiting, limit, count, created_by or nil}))
  end
  for _, one in ipairs(outcome.created) do
    local tenant, id, state, queue, task, parent = unpack(one)
    journal.append('audit', pack({'created', operation, tenant, id, state, queue, task, parent or nil}))
  end
end

local function is_over_limit(i, new, tenant_queue)
  local queue = tenant_queue.queue
  local max_waiting, waiting = rules_of(queue.subject).max_waiting, queue.delayed + queue.ready
  if max_waiting and waiting >= max_waiting then
    refuse(i, 'queue_full', '', '', waiting, max_waiting)
    return true
  end
  local limits = limits_of(tenant_queue)
  waiting = tenant_queue[DELAYED] + tenant_queue[READY]
  if limits.waiting and waiting >= limits.waiting and tenant_queue.tenant ~= SYSTEM then
    if limits.on_full == 'reject' then
      refuse(i, 'waiting_limit', '', '', waiting, limits.waiting)
      return true
    end
    warn(i, new, waiting + 1, limits.waiting)
  end
  return false
end

-- Let a job take over the key of a dead one, and its correlation id, by which both are found (S13). The key notes
-- whose it was, for a batch that is taken out again.
local function replace(i, new, holder, name)
  local head = hget('$heads', holder[KEY_JOB_ID])
  if head then
    local correlation = read_head(head)[CORRELATION_ID]
    new[NEW_CORRELATION_ID] = correlation ~= '' and correlation or journal.uuid_text(holder[KEY_JOB_ID])
    outcome.linked[#outcome.linked + 1] = {i - 1, new[NEW_CORRELATION_ID]}
  end
  new.replaces = {holder[KEY_JOB_ID], holder[KEY_SETTLED_AT]}
  sorted_set('$keys_ended'):remove(name)
end

-- Note a job that an operation made, for the audit.
local function note_created(new, state)
  local parent = read_body(new[NEW_BODY])[BODY_PARENT_ID]
  outcome.created[#outcome.created + 1] = {
    new[NEW_TENANT], journal.uuid_text(new[NEW_ID]), state, new[NEW_QUEUE], new[NEW_TASK],
    parent and journal.uuid_text(parent) or false,
  }
end

-- Store a new job and put it into its state, which is returned.
local function insert_job(new, tenant_queue)
  local id, tenant, task = new[NEW_ID], new[NEW_TENANT], new[NEW_TASK]
  local run_at = new[NEW_RUN_AT] >= 0 and new[NEW_RUN_AT] or NOW + new[NEW_DELAY]
  local state, because = DELAYED, LATER
  if run_at <= NOW then
    state, because, run_at = READY, '', NOW
  end
  local expires_at = new[NEW_EXPIRES_IN] >= 0 and NOW + new[NEW_EXPIRES_IN] or math.max(0, new[NEW_EXPIRES_AT])
  local head = struct.pack(
    NEW_HEAD_FORMAT, 1, state, new[NEW_PRIORITY], new[NEW_IS_DEDUP_UNTIL_STARTED], NOW, run_at, expires_at,
    new[NEW_TIMEOUT], tenant, new[NEW_QUEUE], task, because, new[NEW_DEDUP_KEY], new[NEW_IDEMPOTENCY_KEY], new[NEW_CORRELATION_ID]
  )
  owner_of[id] = tenant
  outcome.made[#outcome.made + 1] = id
  local strand = strand_of(tenant_queue, task)
  strand[JOB_COUNT] = strand[JOB_COUNT] + 1
  enter_waiting(id, tenant_queue, task, state, run_at, new[NEW_PRIORITY], expires_at)
  add_new('HSET', '$heads', id, head)
  add_new('HSET', '$bodies', id, new[NEW_BODY])
  zadd('$all', NOW, id)
  zadd('$by_tenant' .. tenant, NOW, id)
  if new[NEW_CORRELATION_ID] ~= '' then
    zadd('$by_correlation' .. new[NEW_CORRELATION_ID], NOW, id)
  end
  if new[NEW_IDEMPOTENCY_KEY] ~= '' or new[NEW_DEDUP_KEY] ~= '' then
    keys.take(new)
  end
  hint_queue(new[NEW_QUEUE])
  return state
end

-- Answer or refuse a job whose idempotency key is taken. Return false if it may go on, to replace a dead job.
local function is_answered_by_key(i, new, options, holder, name)
  if options.is_repeated and holder[KEY_JOB_ID] == new[NEW_ID] then
    answer_with(i, new[NEW_ID], name)
  elseif holder[KEY_FINGERPRINT] ~= new[NEW_FINGERPRINT] then
    refuse(i, 'idempotency_mismatch', '', holder[KEY_JOB_ID])
  elseif new[NEW_ON_DUPLICATE] == ON_DUPLICATE_RAISE then
    refuse(i, 'duplicate', '', holder[KEY_JOB_ID])
  elseif new[NEW_ON_DUPLICATE] ~= ON_DUPLICATE_REPLACE_DEAD or holder[KEY_STATE] ~= DEAD then
    answer_with(i, holder[KEY_JOB_ID], name)
  else
    return false
  end
  return true
end

-- Admit one job, or note why not; `i` is its number in the batch.
local function admit(i, new, options)
  local id, tenant, task = new[NEW_ID], new[NEW_TENANT], new[NEW_TASK]
  local owner = owner_of[id]
  local is_own = owner == tenant
  if options.is_repeated and is_own then
    return answer_with(i, id)
  end
  if options.must_be_declared and tenant ~= SYSTEM and not policy_of('tenant ' .. tenant).declared then
    return refuse(i, 'unknown_tenant')
  end
  local reason = closed_by[NEW_QUEUE][new[NEW_QUEUE]] or closed_by[NEW_TENANT][tenant] or closed_by[NEW_TASK][task]
  if reason then
    return refuse(i, 'closed', reason)
  end
  if owner then
    return refuse(i, 'id_taken', '', is_own and id)
  end
  local name = new[NEW_IDEMPOTENCY_KEY] ~= '' and tenant .. '\0' .. new[NEW_IDEMPOTENCY_KEY]
  local holder = name and keys.holder(name)
  if holder and is_answered_by_key(i, new, options, holder, name) then
    return
  end
  local duplicate = new[NEW_DEDUP_KEY] ~= '' and hget('$dedup', keys.dedup_name(tenant, task, new[NEW_DEDUP_KEY]))
  if duplicate then
    return answer_with(i, duplicate)
  end
  local tenant_queue = tenant_queue_named(load_queue(new[NEW_QUEUE]), tenant)
  if options.is_without_limits or not is_over_limit(i, new, tenant_queue) then
    if holder then
      replace(i, new, holder, name)
    end
    local state = insert_job(new, tenant_queue)
    if (options.operation or '') ~= '' then
      note_created(new, state)
    end
  end
end

-- Take a job out again of a batch of which another job was refused. Nobody has seen it.
local function undo_insert(id)
  local head = head_of(id)
  local tenant_queue = tenant_queue_of(head)
  keys.give_back(id, head)
  delete_job(id, head)
  count_finished(tenant_queue, head[TASK])
end

-- Return the jobs that answer for repeats: number, id and the parts of the job. Of a pruned job only the key is left:
-- number, id, state and settled at.
local function existing_jobs(repeats)
  local found = {}
  for i, one in ipairs(repeats) do
    local number, id, name = unpack(one)
    local head = find_new('$heads', id) or hget('$heads', id)
    if head then
      local body = find_new('$bodies', id) or hget('$bodies', id)
      found[i] = {number, id, head, body, hget('$attempts', id) or '', hget('$results', id) or ''}
    else
      local holder = keys.holder(name)
      found[i] = {number, id, holder[KEY_STATE], holder[KEY_SETTLED_AT]}
    end
  end
  return found
end
