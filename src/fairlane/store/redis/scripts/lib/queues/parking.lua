-- uses: queues/tenant_queues limits/gates
-- Parking: what is out of the ready index because something holds it (S42, S43, S54).
-- A park is {REASON, SUBJECT, UNTIL (0: not by time), PARK_VT, PARK_SINCE, PARK_GENERATION, PARK_RATE_GENERATION}:
-- a block, the place in the index at which it happened, and the generations of its groups. What is parked stands in
-- up to three sorted sets, each in the order of that place and the task:
--   parked_until                    by the instant at which time unparks it
--   parked_groups, by queue, group and generation: what one changed policy may free. A group is all tenant queues
--                                   ("t"), the strands of a task ("s<task>"), those held by a gate's rate ("r<gate>")
--                                   or by a budget ("b<budget>")
--   gate_waiters, by queue and gate or breaker: who waits for a slot
-- A changed policy only ends the generation of its group (policies/write.lua). Claims and promote unpark its members
-- later, a bounded number each: no script grows with the number of those who wait.

local function parse_park_member(member)
  local task, tenant = member:match('^(%Z*)%z(.*)$', 17)
  return tenant, task
end

local function group_set(queue, group, generation)
  return sorted_set('$parked_groups' .. queue.name .. '\0' .. group .. '\0' .. generation, queue.by_vt, 128)
end

-- Return the group of those that the same gate's rate or the same budget holds.
local function subject_group(parked)
  local kind, name = parked[SUBJECT]:match('^(%l+) (.*)$')
  return kind == 'gate' and 'r' .. name or kind == 'budget' and 'b' .. name or nil
end

-- End the generation of a group: claims unpark its members; what is parked from now on is in the next generation.
local function mark_group(queue, group)
  local generation = queue.generations[group] or 0
  if group_set(queue, group, generation):first() then
    queue.changed_groups[#queue.changed_groups + 1] = {group, generation, NOW}
    queue.generations[group] = generation + 1
    hint_queue(queue.name)
  end
end

local function enter_wait_sets(tenant_queue, task, parked)
  local queue, place = tenant_queue.queue, park_member(tenant_queue, task, parked)
  local group, gate = task == '' and 't' or 's' .. task, gate_of(parked)
  parked[PARK_GENERATION], parked[PARK_RATE_GENERATION] = queue.generations[group] or 0, -1
  group_set(queue, group, parked[PARK_GENERATION]):add(0, place)
  if parked[UNTIL] > 0 then
    queue.parked_until:add(parked[UNTIL], place)
  end
  if is_in_line(parked) then
    gate_waiters(queue, gate):add(0, place)
    if tenant_queue.wide then
      own_gate_waiters(tenant_queue, gate):add(0, place)
    end
    count_gate_waiter(queue, gate, 1)
  elseif subject_group(parked) then
    local own = subject_group(parked)
    parked[PARK_RATE_GENERATION] = queue.generations[own] or 0
    group_set(queue, own, parked[PARK_RATE_GENERATION]):add(0, place)
  end
end

leave_wait_sets = function(tenant_queue, task, parked)
  local queue, place = tenant_queue.queue, park_member(tenant_queue, task, parked)
  local group, gate = task == '' and 't' or 's' .. task, gate_of(parked)
  if parked[PARK_GENERATION] >= 0 then
    group_set(queue, group, parked[PARK_GENERATION]):remove(place)
  end
  if parked[UNTIL] > 0 then
    queue.parked_until:remove(place)
  end
  if is_in_line(parked) then
    gate_waiters(queue, gate):remove(place)
    if tenant_queue.wide then
      own_gate_waiters(tenant_queue, gate):remove(place)
    end
    count_gate_waiter(queue, gate, -1)
  elseif parked[PARK_RATE_GENERATION] >= 0 then
    group_set(queue, subject_group(parked), parked[PARK_RATE_GENERATION]):remove(place)
  end
end

-- Take a tenant queue (task '') or a strand out of the ready index because of a block.
local function park(tenant_queue, task, block)
  local vt = struct.pack('>I4I4', vt_words(tenant_queue.queue, tenant_queue.vt))
  -- What waits for a breaker is woken from the line: with a time, all in it would wake at once.
  local until_ = block[REASON] == 'breaker' and 0 or block[UNTIL]
  local parked = {block[REASON], block[SUBJECT], until_, vt, tenant_queue.since}
  enter_wait_sets(tenant_queue, task, parked)
  if task == '' then
    tenant_queue.parked = parked
  else
    local strand = tenant_queue.strands[task]
    close_strand(tenant_queue, task, strand)
    strand[PARKED] = parked
  end
  update_ready(tenant_queue)
end

local function unpark(tenant_queue, task)
  if task == '' then
    leave_wait_sets(tenant_queue, task, tenant_queue.parked)
    tenant_queue.parked = false
  else
    local strand = tenant_queue.strands[task]
    leave_wait_sets(tenant_queue, task, strand[PARKED])
    strand[PARKED] = false
    open_strand(tenant_queue, task, strand)
  end
  update_ready(tenant_queue)
end

local function park_of(tenant_queue, task)
  if task == '' then
    return tenant_queue.parked
  end
  return tenant_queue.strands[task][PARKED]
end

-- Let time unpark it at an instant, unless it does so earlier.
local function unpark_at(tenant_queue, task, instant)
  local parked = park_of(tenant_queue, task)
  if parked[UNTIL] == 0 or parked[UNTIL] > instant then
    parked[UNTIL] = instant
    tenant_queue.queue.parked_until:add(instant, park_member(tenant_queue, task, parked))
    mark_changed(tenant_queue)
  end
end
