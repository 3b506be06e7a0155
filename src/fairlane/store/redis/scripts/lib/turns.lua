-- Whose turn it is: queues and tenants in them (turns), entering and leaving the ready index (S41, S42). What decides when a turn is in the index is `refresh`, and nothing else.

local queues = {}

local function queue_named(name)
  local queue = queues[name]
  if not queue then
    local stored = look('$queues', name)
    local kept = stored and unpack_one(stored) or {ZERO, 0, 0, 0, {}, {}}
    queue = {
      name = name, stored = stored, turns = {}, upper = kept[1], lower = kept[2], floor = 0,
      delayed = kept[3], ready = kept[4], marks = kept[5], groups = kept[6], subject = 'queue ' .. name, limits = false,
      stride = false, rules = false, moved = {}, carried = NOTHING,
    }
    queue.in_turn = by_turn(queue)
    queue.idle, queue.busy = new_line(queue, '$idle' .. name), new_line(queue, '$busy' .. name)
    queue.woken = sorted('$woken' .. name)
    queues[name] = queue
  end
  return queue
end

-- ── reading turns ──────────────────────────────────────────────────────────

local function adopt(queue, tenant, stored)
  local turn, upper, lower, size = read_turn(stored or NO_TURN)
  turn.queue, turn.tenant, turn.stored, turn.clock = queue, tenant, stored, clock_of(queue, upper, lower)
  if turn.open > 0 and not turn.parked then
    turn.is_ready, turn.was_line = true, line_of(queue, turn)
  end
  if size then
    make_wide(turn, size)
    turn.strands = stored_strands(turn.wide.key)
  end
  queue.turns[tenant] = turn
  return turn
end

local function know_turns(queue, tenants)
  local unknown, turns = {}, queue.turns
  for _, tenant in ipairs(tenants) do
    if turns[tenant] == nil then
      turns[tenant] = false
      unknown[#unknown + 1] = tenant
    end
  end
  local found = read_fields('$turns' .. queue.name, unknown)
  for i, tenant in ipairs(unknown) do
    adopt(queue, tenant, found[i])
  end
end

local function turn_named(queue, tenant)
  local turn = queue.turns[tenant]
  if not turn then
    turn = adopt(queue, tenant, look('$turns' .. queue.name, tenant))
  end
  return turn
end

local function arrival_in(turn)
  turn.arrival = turn.arrival or {0, ''}
  return turn.arrival
end

-- ── moving turns ───────────────────────────────────────────────────────────

local function touch(turn)
  turn.is_changed = true
end

-- Note that a turn has another place, or none; it is written at the end, and sorted in when a line is asked: once, however
-- often it has moved until then.
local function list(turn)
  if not turn.is_ready then
    turn.is_moved = turn.is_moved or true
  elseif turn.is_moved ~= 'unsorted' then
    turn.is_moved = 'unsorted'
    local moved = turn.queue.moved
    moved[#moved + 1] = turn
  end
end

-- Give the turn that goes first, of those with nothing running or of all, as its clock, its "ready since" and its
-- tenant; and its line.
local function sort_in_moved(queue)
  local moved = queue.moved
  for i = 1, #moved do
    local turn = moved[i]
    line_of(queue, turn):sort_in(turn)
    moved[i], turn.is_moved = nil, true
  end
end

local function first_turn(queue, is_new)
  if queue.moved[1] then
    sort_in_moved(queue)
  end
  local idle, busy = queue.idle:first(), not is_new and queue.busy:first() or nil
  if busy and (not idle or goes_first(busy, idle)) then
    return busy, queue.busy
  end
  return idle, queue.idle
end

local function virtual_now(queue)
  local lowest = first_turn(queue)
  return lowest and math.max(queue.floor, lowest[1]) or queue.floor
end

local sequence

local function next_sequence()
  if not sequence then
    sequence = tonumber(look('$meta', 'sequence') or 0)
  end
  sequence = sequence + 1
  put('$meta', 'sequence', sequence)
  return sequence
end

local leave_line -- in parking.lua

-- Let a turn enter or leave the ready index, as its jobs and parks now say; entering activates (S41).
local function refresh(turn)
  if turn[READY] == 0 then
    turn.since = 0
    if turn.parked then
      leave_line(turn, '', turn.parked)
      turn.parked = false
    end
  elseif turn.since == 0 then
    turn.since = next_sequence()
  end
  local is_ready = not turn.parked and turn.open > 0
  if is_ready and not turn.is_ready then
    turn.clock = math.max(turn.clock, virtual_now(turn.queue))
  end
  turn.is_ready = is_ready
  list(turn)
  touch(turn)
end

local function charge(turn, amount)
  turn.clock = turn.clock + amount
  list(turn)
  touch(turn)
end

-- As `fairness.charge`: seconds and the rest apart, since their product would be beyond 2^53.
local function charge_for(stride, cost)
  local seconds, rest = floor(cost / 1000000), cost % 1000000
  return math.max(1, stride * seconds + floor((stride * rest + 500000) / 1000000))
end

-- ── ready jobs ─────────────────────────────────────────────────────────────

local function put_in_order(turn, task, strand, key, id)
  if is_ahead(key, id, strand) then
    put_behind(turn, task, strand[3], strand[4])
    set_head(turn, task, strand, key, id)
  else
    put_behind(turn, task, key, id)
  end
end

local function add_ready(turn, task, key, id)
  local strand = strand_of(turn, task)
  if strand[2] == 0 then
    strand[3], strand[4] = key, id
    open(turn, task, strand)
  else
    put_in_order(turn, task, strand, key, id)
  end
  strand[2] = strand[2] + 1
  turn[READY] = turn[READY] + 1
  turn.queue.ready = turn.queue.ready + 1
  if turn.is_ready then
    touch(turn) -- it has its place already
  else
    refresh(turn)
  end
end

local function take_ready(turn, task, id)
  local strand = turn.strands[task]
  strand[2] = strand[2] - 1
  turn[READY] = turn[READY] - 1
  turn.queue.ready = turn.queue.ready - 1
  if strand[2] == 0 then
    if strand[5] then
      leave_line(turn, task, strand[5])
      strand[5] = false
    else
      shut(turn, task, strand)
    end
    strand[3], strand[4] = 0, NO_ID
  elseif strand[4] == id then
    next_head(turn, task, strand)
  else
    take_out(turn, task, id)
  end
  refresh(turn)
end

-- Give a ready job another place: its tenant stays ready throughout, and keeps its turn.
local function shift_ready(turn, task, key, id)
  local strand = turn.strands[task]
  if strand[2] == 1 then
    set_head(turn, task, strand, key, id)
  else
    if strand[4] == id then
      next_head(turn, task, strand)
    else
      take_out(turn, task, id)
    end
    put_in_order(turn, task, strand, key, id)
  end
  touch(turn)
end

-- ── writing ────────────────────────────────────────────────────────────────

local function is_needless(turn)
  if turn.clock > turn.queue.floor or (turn.arrival and turn.arrival[1] > NOW) then
    return false
  end
  for state = 1, STATES do
    if turn[state] > 0 then
      return false
    end
  end
  return true
end

-- Write the place of a turn in the index, if it has another than it had.
local function write_place(queue, turn, record)
  local line, was = turn.is_ready and line_of(queue, turn), turn.was_line
  local place = line and record:sub(1, PLACE) .. turn.tenant
  local before = was and turn.stored:sub(1, PLACE) .. turn.tenant
  if line ~= was or place ~= before then
    if was then
      remove(was.name, before)
    end
    if line then
      add(line.name, 0, place)
    end
  end
end

-- Give the record of a turn; its strands are put into their hash if they are not in it.
local function record_of(queue, turn)
  local upper, lower = words_of(queue, turn.clock)
  if not turn.wide then
    local record = write_turn(turn, upper, lower)
    if record then
      return record
    end
    widen(turn)
  end
  write_strands(turn)
  return write_wide(turn, upper, lower)
end

local function write(queue, turn)
  if turn.wide and turn.wide.size * 2 <= INLINE_MOST then
    narrow(turn)
  end
  local tenant, record = turn.tenant, record_of(queue, turn)
  if turn.is_moved then
    write_place(queue, turn, record)
  end
  if is_needless(turn) then
    put('$turns' .. queue.name, tenant, false)
    remove('$queues_tenants', queue.name .. '\0' .. tenant)
    return
  end
  append('HSET', '$turns' .. queue.name, tenant, record)
  if not turn.stored then
    add('$queues_tenants', 0, queue.name .. '\0' .. tenant)
  end
end

flushers[#flushers + 1] = function()
  for name, queue in pairs(queues) do
    for _, turn in pairs(queue.turns) do
      if turn.is_changed then
        write(queue, turn)
      end
    end
    local upper, lower = words_of(queue, queue.floor)
    local kept = pack({upper, lower, queue.delayed, queue.ready, queue.marks, queue.groups})
    if kept ~= queue.stored then
      put('$queues', name, kept)
    end
  end
end
