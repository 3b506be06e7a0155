-- Let new jobs in (S12-S18). The checks stand in the order of `admission.admit`; each item sees those before it, of
-- scripts before this one too. What was refused, what an earlier job answers for, who is above a limit and what replaces a
-- dead job is noted in `outcome`, by the number of the item in its batch.

-- An item is unpacked by the form of enqueue.py; the field after its last is where the next one begins.
local function read_items(bytes)
  local items, at, size = {}, 1, #bytes
  while at <= size do
    local item = {struct.unpack(FORM_IN, bytes, at)}
    items[#items + 1] = item
    at = item[NEXT_IN]
  end
  return items
end

local subject_of = {[TENANT_IN] = {}, [QUEUE_IN] = {}, [TASK_IN] = {}} -- by name
local closed_by = {[TENANT_IN] = {}, [QUEUE_IN] = {}, [TASK_IN] = {}} -- by name: why, or false
local owner_of = {} -- by id: the tenant of the job that has it, or false

local function know_subject(field, kind, name, subjects)
  if not subject_of[field][name] then
    subject_of[field][name] = kind .. name
    subjects[#subjects + 1] = kind .. name
  end
end

local function know_closed()
  for field, subjects in pairs(subject_of) do
    for name, subject in pairs(subjects) do
      local policy = policy_of(subject)
      local is_closed = policy.closed_until and is_living(policy.closed_until)
      closed_by[field][name] = is_closed and subject .. ': ' .. policy.closed_because
    end
  end
end

local function know_owners(ids)
  local found = read_fields('$heads', ids)
  for i, id in ipairs(ids) do
    owner_of[id] = found[i] and read_head(found[i])[TENANT]
  end
end

local function know_items(items)
  local ids, tenants_of, subjects, has_tenants = {}, {}, {EVERYONE}, is_any_special()
  for i, item in ipairs(items) do
    local queue, tenant = item[QUEUE_IN], item[TENANT_IN]
    ids[i] = item[ID_IN]
    local tenants = tenants_of[queue]
    if not tenants then
      tenants = {}
      tenants_of[queue] = tenants
    end
    tenants[#tenants + 1] = tenant
    if has_tenants then
      know_subject(TENANT_IN, 'tenant ', tenant, subjects)
    end
    know_subject(QUEUE_IN, 'queue ', queue, subjects)
    know_subject(TASK_IN, 'task ', item[TASK_IN], subjects)
  end
  know_policies(subjects)
  know_closed()
  for name, tenants in pairs(tenants_of) do
    know_turns(queue_named(name), tenants)
  end
  know_owners(ids)
end

local outcome = {refused = {}, repeats = {}, over = {}, linked = {}, made = {}}

local function refuse(i, kind, detail, existing, waiting, limit)
  local refused = outcome.refused
  refused[#refused + 1] = {i - 1, kind, detail or '', existing or '', waiting or 0, limit or 0}
end

local function answer(i, existing, name)
  local repeats = outcome.repeats
  repeats[#repeats + 1] = {i - 1, existing, name or ''}
end

local function is_over_limit(i, item, turn)
  local queue = turn.queue
  local most, waiting = rules_of(queue.subject).max_waiting, queue.delayed + queue.ready
  if most and waiting >= most then
    refuse(i, 'queue_full', '', '', waiting, most)
    return true
  end
  local limits = limits_of(turn)
  waiting = turn[DELAYED] + turn[READY]
  if limits.waiting and waiting >= limits.waiting and turn.tenant ~= SYSTEM then
    if limits.on_full == 'reject' then
      refuse(i, 'waiting_limit', '', '', waiting, limits.waiting)
      return true
    end
    local over = outcome.over
    over[#over + 1] = {i - 1, waiting + 1, limits.waiting}
  end
  return false
end

local uuid_form = ('%02x'):rep(4) .. ('-%02x%02x'):rep(3) .. '-' .. ('%02x'):rep(6)

-- Let a job take over the key of a dead one, and its correlation id, by which both are found (S13). The key notes whose it
-- was, for a batch that is taken out again.
local function replace(i, item, holder, name)
  local head = look('$heads', holder[1])
  if head then
    local correlation = read_head(head)[CORRELATION_ID]
    item[CORRELATION_IN] = correlation ~= '' and correlation or uuid_form:format(holder[1]:byte(1, 16))
    outcome.linked[#outcome.linked + 1] = {i - 1, item[CORRELATION_IN]}
  end
  item.replaces = {holder[1], holder[4]}
  sorted('$keys_ended'):remove(name)
end

local function let_in(item, turn)
  local id, tenant, task = item[ID_IN], item[TENANT_IN], item[TASK_IN]
  local run_at = item[RUN_AT_IN] >= 0 and item[RUN_AT_IN] or NOW + item[DELAY_IN]
  local state, because = DELAYED, LATER
  if run_at <= NOW then
    state, because, run_at = READY, '', NOW
  end
  local expires_at = item[EXPIRES_IN_IN] >= 0 and NOW + item[EXPIRES_IN_IN] or math.max(0, item[EXPIRES_AT_IN])
  local head = struct.pack(
    BIRTH_FORM, 1, state, item[PRIORITY_IN], item[IS_SHORT_IN], NOW, run_at, expires_at, item[TIMEOUT_IN],
    tenant, item[QUEUE_IN], task, because, item[DEDUP_IN], item[KEY_IN], item[CORRELATION_IN]
  )
  owner_of[id] = tenant
  outcome.made[#outcome.made + 1] = id
  local strand = strand_of(turn, task)
  strand[1] = strand[1] + 1
  enter_waiting(id, turn, task, state, run_at, item[PRIORITY_IN], expires_at)
  append('HSET', '$heads', id, head)
  append('HSET', '$bodies', id, item[BODY_IN])
  add('$all', NOW, id)
  add('$by_tenant' .. tenant, NOW, id)
  if item[CORRELATION_IN] ~= '' then
    add('$by_correlation' .. item[CORRELATION_IN], NOW, id)
  end
  count_task(task, 1)
  if item[KEY_IN] ~= '' then
    put('$keys', tenant .. '\0' .. item[KEY_IN], pack({id, item[FINGERPRINT_IN], 0, 0, item.replaces}))
    add('$keys_named', 0, tenant .. '\0' .. item[KEY_IN])
  end
  if item[DEDUP_IN] ~= '' then
    put('$dedup', tenant .. '\0' .. task .. '\0' .. item[DEDUP_IN], id)
    add('$dedup_named', 0, tenant .. '\0' .. task .. '\0' .. item[DEDUP_IN])
  end
  hint(item[QUEUE_IN])
end

-- Take one item in, or note why not; `i` is its number in the batch.
local function admit(i, item, options)
  local id, tenant, task = item[ID_IN], item[TENANT_IN], item[TASK_IN]
  local owner = owner_of[id]
  local is_own = owner == tenant
  if options.is_repeated and is_own then
    return answer(i, id)
  end
  if options.must_be_declared and tenant ~= SYSTEM and not policy_of('tenant ' .. tenant).declared then
    return refuse(i, 'unknown_tenant')
  end
  local reason = closed_by[QUEUE_IN][item[QUEUE_IN]] or closed_by[TENANT_IN][tenant] or closed_by[TASK_IN][task]
  if reason then
    return refuse(i, 'closed', reason)
  end
  if owner then
    return refuse(i, 'id_taken', '', is_own and id)
  end
  local name = item[KEY_IN] ~= '' and tenant .. '\0' .. item[KEY_IN]
  local stored = name and look('$keys', name)
  if stored then
    local holder = unpack_one(stored)
    if options.is_repeated and holder[1] == id then
      return answer(i, id, name)
    end
    if holder[2] ~= item[FINGERPRINT_IN] then
      return refuse(i, 'idempotency_mismatch', '', holder[1])
    end
    if item[ON_DUPLICATE_IN] == 1 then
      return refuse(i, 'duplicate', '', holder[1])
    end
    if item[ON_DUPLICATE_IN] ~= 2 or holder[3] ~= DEAD then
      return answer(i, holder[1], name)
    end
  end
  local duplicate = item[DEDUP_IN] ~= '' and look('$dedup', tenant .. '\0' .. task .. '\0' .. item[DEDUP_IN])
  if duplicate then
    return answer(i, duplicate)
  end
  local turn = turn_named(queue_named(item[QUEUE_IN]), tenant)
  if not is_over_limit(i, item, turn) then
    if stored then
      replace(i, item, unpack_one(stored), name)
    end
    let_in(item, turn)
  end
end

-- Take a job out again that was let in by a batch of which another item was refused: nobody has seen it.
local function withdraw(id)
  local head = head_of(id)
  local turn, name = turn_of(head), head[TENANT] .. '\0' .. head[IDEMPOTENCY_KEY]
  free_dedup(id, head)
  if head[IDEMPOTENCY_KEY] ~= '' then
    local holder = unpack_one(look('$keys', name))
    if holder[5] then
      put('$keys', name, pack({holder[5][1], holder[2], DEAD, holder[5][2]}))
      sorted('$keys_ended'):add(holder[5][2], name)
    else
      put('$keys', name, false)
      sorted('$keys_named'):remove(name)
    end
  end
  drop(id, head)
  count_out(turn, head[TASK])
end

-- Give the jobs that answer for repeats: number, id and the parts of the job; or of its husk, state and time.
local function answers(repeats)
  local found = {}
  for i, one in ipairs(repeats) do
    local number, id, name = unpack(one)
    local head = look_among_new('$heads', id) or look('$heads', id)
    if head then
      local body = look_among_new('$bodies', id) or look('$bodies', id)
      found[i] = {number, id, head, body, look('$attempts', id) or '', look('$results', id) or ''}
    else
      local holder = unpack_one(look('$keys', name))
      found[i] = {number, id, holder[3], holder[4]}
    end
  end
  return found
end
