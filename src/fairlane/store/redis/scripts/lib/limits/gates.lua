-- uses: limits/policies limits/breakers
-- Gates: how many slots are used, and who waits for one (S43).
-- `gate_slots` has the used slots by gate. The waiters of (queue, gate) are a sorted set of parked strands,
-- `gate_waiters`; their number is in `gate_waiter_counts`, so that a freed slot finds the queues that get a hint.

-- ── slots ────────────────────────────────────────────────────────────────────

local function gate_slots_used(gate)
  return tonumber(hget('$gate_slots', gate) or 0)
end

local function change_gate_use(gate, change)
  local used = gate_slots_used(gate) + change
  hset('$gate_slots', gate, used ~= 0 and used)
end

local function free_gate_slots(gate) -- of a gate, or of a breaker by the name of its line; nil: no limit
  if breakers.is_line(gate) then
    return breakers.line_slots(gate)
  end
  local limit = rules_of('gate ' .. gate).limit
  return limit and math.max(0, limit - gate_slots_used(gate))
end

-- ── waiters ──────────────────────────────────────────────────────────────────

local function gate_waiters(queue, gate)
  return sorted_set('$gate_waiters' .. queue.name .. '\0' .. gate, queue.by_vt)
end

local waiter_counts -- by queue and gate, as this script has read and changed them

local function gate_waiter_counts()
  if not waiter_counts then
    waiter_counts = {}
    local stored = call('HGETALL', PREFIX .. '$gate_waiter_counts')
    for i = 1, #stored, 2 do
      waiter_counts[stored[i]] = tonumber(stored[i + 1])
    end
    for name, length in pairs(changed_fields['$gate_waiter_counts'] or {}) do
      waiter_counts[name] = length or nil
    end
  end
  return waiter_counts
end

local function count_gate_waiter(queue, gate, change)
  local name = queue.name .. '\0' .. gate
  local length = (gate_waiter_counts()[name] or 0) + change
  waiter_counts[name] = length ~= 0 and length or nil
  hset('$gate_waiter_counts', name, length ~= 0 and length)
end

local function gates_with_waiters(queue)
  local found = {}
  for name in pairs(gate_waiter_counts()) do
    local other, gate = name:match('^(%Z*)%z(.*)$')
    if other == queue.name then
      found[#found + 1] = gate
    end
  end
  table.sort(found, bytes_before)
  return found
end

-- Send hints to the workers of all queues with waiters at a gate.
local function hint_gate_queues(gate)
  for name in pairs(gate_waiter_counts()) do
    local queue, other = name:match('^(%Z*)%z(.*)$')
    if other == gate then
      hint_queue(queue)
    end
  end
end
