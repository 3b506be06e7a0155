-- uses: queues/parking
-- Unparking: put back into the ready index what time, a changed policy or a gate's free slot lets run (S42, S43, S54).
-- Reads and changes the sets of parking.lua. An unpark pass is what one claim may still do in one queue:
-- `unparks_left`, `changes_left` (members of changed groups), `promoted` (due jobs made ready so far), `filled` (slots
-- given away by gate). It lasts over several scripts.

-- Load the tenant queues of the rest of a page at once.
local function load_waiters(queue, waiters)
  local tenants = {}
  for i = waiters.at, #waiters.page, 2 do
    tenants[#tenants + 1] = parse_park_member(waiters.page[i])
  end
  load_tenant_queues(queue, tenants)
end

-- Let time unpark, now, the members of groups whose policies have changed, at most `limit`. Return how many, and
-- whether these were all.
local function apply_changed_groups(queue, limit)
  local count = 0
  while queue.changed_groups[1] do
    local group, generation, instant = unpack(queue.changed_groups[1])
    local waiters = group_set(queue, group, generation)
    local entry = waiters:first()
    while entry do
      if count == limit then
        return count, false
      end
      count = count + 1
      local tenant, task = parse_park_member(entry[MEMBER])
      if not queue.tenant_queues[tenant] then
        load_waiters(queue, waiters)
      end
      local tenant_queue = tenant_queue_named(queue, tenant)
      park_of(tenant_queue, task)[group:match('^[rb]') and PARK_RATE_GENERATION or PARK_GENERATION] = -1
      mark_changed(tenant_queue)
      waiters:remove(entry[MEMBER])
      unpark_at(tenant_queue, task, instant)
      entry = waiters:first()
    end
    table.remove(queue.changed_groups, 1)
  end
  return count, true
end

local function new_unpark_pass(only_tenant)
  return {
    unparks_left = MAX_UNPARKED, changes_left = MAX_UNPARKED + 1, promoted = 0, filled = {}, is_partial = false,
    is_done = false, only_tenant = only_tenant,
  }
end

-- Return the tenant queue and task of the first waiter at a gate. A peek for one tenant reads only its own.
local function first_gate_waiter(queue, gate, only_tenant)
  if not only_tenant then
    local entry = gate_waiters(queue, gate):first()
    if not entry then
      return nil
    end
    local tenant, task = parse_park_member(entry[MEMBER])
    return tenant_queue_named(queue, tenant), task
  end
  local tenant_queue, first, chosen = tenant_queue_named(queue, only_tenant), nil, nil
  if tenant_queue.wide then
    local entry = own_gate_waiters(tenant_queue, gate):first()
    if not entry then
      return nil
    end
    local _, task = parse_park_member(entry[MEMBER])
    return tenant_queue, task
  end
  for task, strand in pairs(tenant_queue.strands) do
    if is_in_line(strand[PARKED]) and gate_of(strand[PARKED]) == gate then
      local place = park_member(tenant_queue, task, strand[PARKED])
      if not first or bytes_before(place, first) then
        first, chosen = place, task
      end
    end
  end
  return first and tenant_queue, chosen
end

-- Unpark as many waiters of each gate as it has free slots, at most `limit`. Return whether any of their tenants is
-- ready now, and whether the next script must go on.
local function unpark_at_gates(queue, unpark_pass, filled, limit)
  local is_any_ready, is_cut, last = false, false, math.max(0, unpark_pass.unparks_left - limit)
  for _, gate in ipairs(gates_with_waiters(queue)) do
    local free_slots = free_gate_slots(gate)
    while not free_slots or free_slots > (filled[gate] or 0) do
      local tenant_queue, task = first_gate_waiter(queue, gate, unpark_pass.only_tenant)
      if not tenant_queue then
        break
      end
      if unpark_pass.unparks_left == last then
        unpark_pass.is_partial, is_cut = true, last > 0
        break
      end
      unpark_pass.unparks_left = unpark_pass.unparks_left - 1
      unpark(tenant_queue, task)
      if tenant_queue.is_ready then -- else its tenant cannot take the slot
        is_any_ready, filled[gate] = true, (filled[gate] or 0) + 1
      end
    end
  end
  return is_any_ready, is_cut
end

-- Unpark what time or a changed policy frees, then what gates have slots for, at most `limit` in this script. Return
-- false if the next script must go on.
local function run_unpark_pass(queue, unpark_pass, limit)
  local applied, is_all_applied = apply_changed_groups(queue, math.min(limit, unpark_pass.changes_left))
  unpark_pass.changes_left, limit = unpark_pass.changes_left - applied, limit - applied
  if not is_all_applied and unpark_pass.changes_left > 0 then
    return false
  end
  local entry = queue.parked_until:first()
  while entry and entry[SCORE] <= NOW and unpark_pass.unparks_left > 0 do
    if limit == 0 then
      return false
    end
    unpark_pass.unparks_left, limit = unpark_pass.unparks_left - 1, limit - 1
    local tenant, task = parse_park_member(entry[MEMBER])
    if not queue.tenant_queues[tenant] then
      load_waiters(queue, queue.parked_until)
    end
    unpark(tenant_queue_named(queue, tenant), task)
    entry = queue.parked_until:first()
  end
  unpark_pass.is_partial = not is_all_applied or (entry ~= nil and entry[SCORE] <= NOW)
  local _, is_cut = unpark_at_gates(queue, unpark_pass, unpark_pass.filled, limit)
  return not is_cut
end
