-- Whose turn it is: queues, tenants in them (turns) and their tasks (strands), entering and leaving the ready
-- index (S41, S42). What decides when a turn is in the index is `refresh`, and nothing else.
--
-- A clock is kept as 8 bytes, exact for ever; a Lua number is exact up to 2^53 alone. So a script counts from
-- the queue's floor as it found it: only what is further from it than 2^53 would be rounded.

local WORD = 4294967296 -- 2^32
local ZERO = 1073741824 -- the upper word of a clock at 0; clocks may be below (S41: corrections)

local queues = {}

local function read_clock(queue, bytes, at)
  local upper, lower = struct.unpack('>I4I4', bytes, at)
  return (upper - queue.upper) * WORD + (lower - queue.lower)
end

local function write_clock(queue, clock)
  local upper, lower = queue.upper + floor(clock / WORD), queue.lower + clock % WORD
  if lower >= WORD then
    upper, lower = upper + 1, lower - WORD
  end
  return struct.pack('>I4I4', upper, lower)
end

-- In the index, and wherever parked turns and strands wait in line: clock, ready since, then the names.
local function by_turn(queue)
  return function(member)
    local since = struct.unpack('>I8', member, 9)
    return {read_clock(queue, member, 1), since, member}
  end
end

local function queue_named(name)
  local queue = queues[name]
  if not queue then
    local stored = look('$queues', name)
    local kept = stored and unpack_one(stored) or {ZERO, 0, 0, 0, {}, {}}
    queue = {
      name = name, stored = stored, turns = {}, upper = kept[1], lower = kept[2], floor = 0,
      delayed = kept[3], ready = kept[4], marks = kept[5], groups = kept[6], subject = 'queue ' .. name,
    }
    queue.in_turn = by_turn(queue)
    queue.index = sorted('$index' .. name, queue.in_turn, 8)
    queue.newcomers = sorted('$newcomers' .. name, queue.in_turn, 8)
    queue.woken = sorted('$woken' .. name)
    queues[name] = queue
  end
  return queue
end

-- ── reading turns ──────────────────────────────────────────────────────────

local function is_open(strand)
  return strand[2] > 0 and not strand[5]
end

local function adopt(queue, tenant, stored)
  local clock, since, counts, arrival, parked, strands
  local open = 0
  if stored then
    clock, since, counts, arrival, parked, strands = read_turn(stored)
    for _, strand in pairs(strands) do
      if is_open(strand) then
        open = open + 1
      end
    end
  else
    since, counts, arrival, parked, strands = 0, {0, 0, 0, 0, 0, 0}, {0, ''}, false, {}
  end
  local is_ready = not parked and open > 0
  local listed = is_ready and clock .. struct.pack('>I8', since) .. tenant or nil
  local turn = { -- all at once: a table that grows is made anew each time
    queue = queue, tenant = tenant, subject = 'tenant ' .. tenant, since = since, counts = counts, arrival = arrival,
    parked = parked, strands = strands, open = open, is_ready = is_ready, jobs = {}, is_new = not stored,
    is_changed = false, limits = false, listed = listed, listed_new = counts[RUNNING] == 0 and listed or nil,
    clock = stored and read_clock(queue, clock, 1) or (ZERO - queue.upper) * WORD - queue.lower,
  }
  queue.turns[tenant] = turn
  return turn
end

local function know_turns(queue, tenants)
  local unknown, asked = {}, {}
  for _, tenant in ipairs(tenants) do
    if not queue.turns[tenant] and not asked[tenant] then
      asked[tenant] = true
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
    turn = adopt(queue, tenant, call('HGET', P .. '$turns' .. queue.name, tenant))
  end
  return turn
end

local function jobs_of(turn, task)
  local jobs = turn.jobs[task]
  if not jobs then
    jobs = sorted('$strand' .. turn.queue.name .. '\0' .. turn.tenant .. '\0' .. task)
    turn.jobs[task] = jobs
  end
  return jobs
end

-- ── the ready index ────────────────────────────────────────────────────────

local function touch(turn)
  turn.is_changed = true
end

local function list(turn)
  local queue, listed = turn.queue, nil
  if turn.is_ready then
    listed = write_clock(queue, turn.clock) .. struct.pack('>I8', turn.since) .. turn.tenant
  end
  if listed ~= turn.listed then
    if turn.listed then
      queue.index:remove(turn.listed)
    end
    if listed then
      queue.index:add(0, listed)
    end
    turn.listed = listed
  end
  local listed_new = turn.counts[RUNNING] == 0 and listed or nil
  if listed_new ~= turn.listed_new then
    if turn.listed_new then
      queue.newcomers:remove(turn.listed_new)
    end
    if listed_new then
      queue.newcomers:add(0, listed_new)
    end
    turn.listed_new = listed_new
  end
end

local function virtual_now(queue)
  local lowest = queue.index:first()
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
  if turn.counts[READY] == 0 then
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

-- ── strands ────────────────────────────────────────────────────────────────

local function strand_of(turn, task)
  local strand = turn.strands[task]
  if not strand then
    strand = {0, 0, 0, NO_ID, false}
    turn.strands[task] = strand
  end
  return strand
end

local function add_ready(turn, task, key, id)
  local strand = strand_of(turn, task)
  if strand[2] == 0 then
    turn.open = turn.open + 1
  end
  if strand[2] == 0 or key < strand[3] or (key == strand[3] and is_before(id, strand[4])) then
    strand[3], strand[4] = key, id
  end
  strand[2] = strand[2] + 1
  turn.counts[READY] = turn.counts[READY] + 1
  turn.queue.ready = turn.queue.ready + 1
  jobs_of(turn, task):add(key, id)
  refresh(turn)
end

local function set_head(turn, task, strand)
  local head = jobs_of(turn, task):first()
  strand[3], strand[4] = head[1], head[3]
end

local function take_ready(turn, task, id)
  local strand = turn.strands[task]
  jobs_of(turn, task):remove(id)
  strand[2] = strand[2] - 1
  turn.counts[READY] = turn.counts[READY] - 1
  turn.queue.ready = turn.queue.ready - 1
  if strand[2] == 0 then
    if strand[5] then
      leave_line(turn, task, strand[5])
      strand[5] = false
    else
      turn.open = turn.open - 1
    end
    strand[3], strand[4] = 0, NO_ID
  elseif strand[4] == id then
    set_head(turn, task, strand)
  end
  refresh(turn)
end

-- ── writing ────────────────────────────────────────────────────────────────

local function is_needless(turn)
  for _, count in ipairs(turn.counts) do
    if count > 0 then
      return false
    end
  end
  return turn.arrival[1] <= NOW and turn.clock <= turn.queue.floor
end

local function write(queue, turn)
  local tenant, by_tenant, by_queue = turn.tenant, sorted('$tenants_queues'), sorted('$queues_tenants')
  if is_needless(turn) then
    put('$turns' .. queue.name, tenant, false)
    by_tenant:remove(tenant .. '\0' .. queue.name)
    by_queue:remove(queue.name .. '\0' .. tenant)
    return
  end
  local clock = write_clock(queue, turn.clock)
  local record = write_turn(clock, turn.since, turn.counts, turn.arrival, turn.parked, turn.strands)
  put('$turns' .. queue.name, tenant, record)
  if turn.is_new then
    by_tenant:add(0, tenant .. '\0' .. queue.name)
    by_queue:add(0, queue.name .. '\0' .. tenant)
  end
end

flushers[#flushers + 1] = function()
  for name, queue in pairs(queues) do
    for _, turn in pairs(queue.turns) do
      if turn.is_changed then
        write(queue, turn)
      end
    end
    local clock = write_clock(queue, queue.floor)
    local upper, lower = struct.unpack('>I4I4', clock)
    local kept = pack({upper, lower, queue.delayed, queue.ready, queue.marks, queue.groups})
    if kept ~= queue.stored then
      put('$queues', name, kept)
    end
  end
end
