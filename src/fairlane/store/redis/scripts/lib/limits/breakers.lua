-- uses: limits/policies
-- Circuit breakers that are not closed (S58, S110): the hash `open_breakers`, by name and tenant ('' for all tenants). Such a
-- breaker is a gate before its tasks, of no slots while it is open, then of 1, 2, 4 … Its line is named as `explain` shows it.
-- A state is {open_until, half_opened_at (-1: not yet), slots, permits}; a permit holds a slot as long as its job runs.
-- In one table: Lua allows 200 local names, and a script that settles has nearly as many.

local breakers = {
  passed = {}, -- jobs that this script lets pass, and has not made running yet
  taken = {}, -- the same in order, for the reply
  states = {},
  is_running = false, -- set by jobs/state_changes
}

function breakers.is_any_open()
  if breakers.any == nil then
    breakers.any = call('HLEN', PREFIX .. '$open_breakers') > 0
  end
  return breakers.any
end

-- Return the state of a breaker; false if it is closed.
function breakers.state_of(name, tenant)
  local field = name .. '\0' .. tenant
  local state = breakers.states[field]
  if state == nil then
    local stored = hget('$open_breakers', field)
    state = false
    if stored then
      local open_until, half_opened_at, slots, at = struct.unpack(BREAKER_FORMAT, stored)
      state = {field = field, open_until = open_until, half_opened_at = half_opened_at, slots = slots,
        permits = split_ids(stored:sub(at))}
    end
    breakers.states[field] = state
  end
  return state
end

function breakers.holds(id)
  return breakers.passed[id] or breakers.is_running(id)
end

-- Return when an open breaker lets the first one pass; 0 if it is not open, or nobody knows.
function breakers.opens_at(state)
  return NOW < state.open_until and state.open_until < LAST_INSTANT and state.open_until or 0
end

function breakers.free_slots(state)
  if NOW < state.open_until then
    return 0
  end
  local free = state.slots
  for _, id in ipairs(state.permits) do
    if breakers.holds(id) then
      free = free - 1
    end
  end
  return math.max(0, free)
end

function breakers.state_of_line(line)
  local name, tenant = line:match('^breaker ([^ ]+) ?(.*)$')
  return breakers.state_of(name, tenant)
end

function breakers.is_line(line)
  return line:sub(1, 8) == 'breaker '
end

-- Return how many of those in a line may pass; nil: all.
function breakers.line_slots(line)
  local state = breakers.state_of_line(line)
  return state and breakers.free_slots(state) or nil
end

-- Return the states before a task of a tenant: those that are not closed.
function breakers.before(task, tenant)
  local name, found = rules_of('task ' .. task).breaker, {}
  if name and breakers.is_any_open() then
    found[1] = breakers.state_of(name, '') or nil
    found[#found + 1] = breakers.state_of(name, tenant) or nil
  end
  return found
end

-- Return what holds a strand at its breaker: that of all tenants, or its own.
function breakers.block(task, tenant)
  for _, state in ipairs(breakers.before(task, tenant)) do
    if breakers.free_slots(state) == 0 then
      local subject = 'breaker ' .. state.field:gsub('%z$', ''):gsub('%z', ' ')
      return {'breaker', subject, breakers.opens_at(state)}
    end
  end
end

-- Return those that are not closed, each as its field and its state as they are stored: for a claim that wants to hear of them
-- (S124). Only their number, if they are too many.
function breakers.named(request)
  if not request.names_breakers or not breakers.is_any_open() then
    return {}
  end
  local count = call('HLEN', PREFIX .. '$open_breakers')
  return count > MAX_OPEN_BREAKERS and {count} or call('HGETALL', PREFIX .. '$open_breakers')
end

-- Note a job that passes.
function breakers.take(task, tenant, id)
  local states = breakers.before(task, tenant)
  for _, state in ipairs(states) do
    local held = {}
    for _, other in ipairs(state.permits) do
      if other ~= id and breakers.holds(other) then
        held[#held + 1] = other
      end
    end
    held[#held + 1] = id
    state.permits = held
    state.half_opened_at = state.half_opened_at < 0 and NOW or state.half_opened_at
    local head = struct.pack(BREAKER_FORMAT, state.open_until, state.half_opened_at, state.slots)
    hset('$open_breakers', state.field, head .. table.concat(held))
  end
  if states[1] then
    breakers.passed[id] = true
    breakers.taken[#breakers.taken + 1] = id
  end
end
