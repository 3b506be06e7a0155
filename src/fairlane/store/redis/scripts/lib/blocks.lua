-- What may not run now, and what holds it (S42-S46): of a queue, of a tenant in it, of a strand. A block is
-- {reason, subject, until}; 0 if time alone does not end it.

local function pause_of(subject)
  local policy = policy_of(subject)
  if policy.paused_until and is_living(policy.paused_until) then
    return {'paused', subject, policy.paused_until}
  end
end

-- Wait until the rate allows a start, or until an override ends and another rate may be in force.
local function rate_block(rate, kept, layers)
  local instant = free_at(rate, kept)
  if instant > NOW then
    return {'rate', layers[1], earlier_end(instant, layers)}
  end
end

local function queue_block(queue)
  local subject = queue.subject
  local rate = rules_of(subject).rate
  return pause_of(subject) or rate and rate_block(rate, arrival_of(subject), {subject})
end

local function turn_block(turn)
  if turn.queue.limits == NOTHING then
    return nil -- nothing is said of any of its tenants
  end
  local pause = is_any_special() and pause_of('tenant ' .. turn.tenant)
  if pause then
    return pause
  end
  local limits = limits_of(turn)
  if limits == NOTHING then
    return nil
  end
  local layers = {'tenant ' .. turn.tenant, EVERYONE, turn.queue.subject}
  if limits.running and turn[RUNNING] >= limits.running then
    return {'running_limit', layers[1], earlier_end(0, layers)}
  end
  return limits.rate and rate_block(limits.rate, arrival_in(turn), layers)
end

local free_tasks = {} -- those that nothing can hold while this script runs

local function strand_block(task)
  if free_tasks[task] then
    return nil
  end
  local subject = 'task ' .. task
  local pause = pause_of(subject)
  if pause then
    return pause
  end
  local rules = rules_of(subject)
  local block = rules.rate and rate_block(rules.rate, arrival_of(subject), {subject})
  if block or not rules.gate then
    free_tasks[task] = not rules.rate
    return block
  end
  local gate = 'gate ' .. rules.gate
  if room_at(rules.gate) == 0 then
    return {'gate', gate, earlier_end(0, {gate})}
  end
  local rate = rules_of(gate).rate
  return rate and rate_block(rate, arrival_of(gate), {gate})
end

-- Count a start against every rate it falls under and take its place at the gate; name the gate.
local function count_start(turn, task)
  local queue, limits = turn.queue, limits_of(turn)
  if queue.rules.rate then
    count_against(queue.rules.rate, queue.subject)
  end
  if limits.rate then
    start(limits.rate, arrival_in(turn))
  end
  if free_tasks[task] then
    return ''
  end
  local rules = rules_of('task ' .. task)
  if rules.rate then
    count_against(rules.rate, 'task ' .. task)
  end
  if not rules.gate then
    return ''
  end
  use_gate(rules.gate, 1)
  local gate_rate = rules_of('gate ' .. rules.gate).rate
  if gate_rate then
    count_against(gate_rate, 'gate ' .. rules.gate)
  end
  return rules.gate
end
