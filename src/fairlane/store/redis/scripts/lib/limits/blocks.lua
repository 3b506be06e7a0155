-- uses: limits/rate_limit limits/gates limits/budgets queues/tenant_queues
-- Blocks: pause, rate, running limit, breaker, gate and budget, as they hold a queue, a tenant in it or a strand (S42-S46). Reads
-- policies, `rate_states` and `gate_slots` through the files it uses.
-- A block is {REASON, SUBJECT, UNTIL}; UNTIL is 0 if time alone does not end it.

local function pause_of(subject)
  local policy = policy_of(subject)
  if policy.paused_until and is_in_force(policy.paused_until) then
    return {'paused', subject, policy.paused_until}
  end
end

local function queue_block(queue)
  local subject = queue.subject
  local rate = rules_of(subject).rate
  return pause_of(subject) or rate and rate_block(rate, rate_state_of(subject), {subject})
end

local function tenant_block(tenant_queue)
  if tenant_queue.queue.limits == EMPTY then
    return nil -- no tenant of it has limits or a policy
  end
  local pause = any_tenant_policy() and pause_of('tenant ' .. tenant_queue.tenant)
  if pause then
    return pause
  end
  local limits = limits_of(tenant_queue)
  if limits == EMPTY then
    return nil
  end
  local layers = {'tenant ' .. tenant_queue.tenant, EVERYONE, tenant_queue.queue.subject}
  if limits.running and tenant_queue[RUNNING] >= limits.running then
    return {'running_limit', layers[1], or_override_end(0, layers)}
  end
  return limits.rate and rate_block(limits.rate, tenant_rate_state(tenant_queue), layers)
end

local free_tasks = {} -- tasks that nothing can hold while this script runs

local function task_block(task, tenant)
  if free_tasks[task] then
    return nil
  end
  local subject = 'task ' .. task
  local pause = pause_of(subject)
  if pause then
    return pause
  end
  local rules = rules_of(subject)
  local is_guarded = rules.breaker and breakers.is_any_open()
  local block = is_guarded and breakers.block(task, tenant)
    or rules.rate and rate_block(rules.rate, rate_state_of(subject), {subject})
  if block or not rules.gate then
    free_tasks[task] = not rules.rate and not rules.budget and not is_guarded
    return block or nil
  end
  local gate = 'gate ' .. rules.gate
  if free_gate_slots(rules.gate) == 0 then
    return {'gate', gate, or_override_end(0, {gate})}
  end
  local rate = rules_of(gate).rate
  return rate and rate_block(rate, rate_state_of(gate), {gate})
end

local function strand_block(task, tenant)
  return task_block(task, tenant) or not free_tasks[task] and budgets.block(task, tenant) or nil
end

-- Count a start against every rate it falls under, and take a slot at the gate. Return the gate, or ''.
local function count_start(tenant_queue, task)
  local queue, limits = tenant_queue.queue, limits_of(tenant_queue)
  if queue.rules.rate then
    count_against_rate(queue.rules.rate, queue.subject)
  end
  if limits.rate then
    record_start(limits.rate, tenant_rate_state(tenant_queue))
  end
  if free_tasks[task] then
    return ''
  end
  local rules = rules_of('task ' .. task)
  if rules.rate then
    count_against_rate(rules.rate, 'task ' .. task)
  end
  if not rules.gate then
    return ''
  end
  change_gate_use(rules.gate, 1)
  local gate_rate = rules_of('gate ' .. rules.gate).rate
  if gate_rate then
    count_against_rate(gate_rate, 'gate ' .. rules.gate)
  end
  return rules.gate
end
