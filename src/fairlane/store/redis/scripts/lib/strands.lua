-- Strands: the unfinished jobs of a turn by their tasks. A strand is {jobs, ready, sort key and id of its head, parked,
-- the set of its other ready jobs if this script has asked it, its heirs, where the first of them begins}. Heirs are the
-- next few jobs after the head, packed: claims take them out of the set together, so that most ask it nothing. Nearly all turns have one, and those with a few have them
-- in their records. A turn with more than INLINE_MOST is wide: its strands are in a hash, by task, and the heads of those
-- that are open in a sorted set; so a script reads and writes those that it touches, however many there are.

local function is_open(strand)
  return strand[2] > 0 and not strand[5]
end

-- ── what is parked: see parking.lua ────────────────────────────────────────

local function place_of(turn, task, parked)
  return parked[4] .. struct.pack('>I8', parked[5]) .. task .. '\0' .. turn.tenant
end

local function gate_of(parked)
  return parked[2]:sub(1, 5) == 'gate ' and parked[2]:sub(6) or nil
end

local function is_at_gate(strand)
  return strand[5] and strand[5][1] == 'gate'
end

-- Give the line of a wide turn's own strands at a gate: a peek for its tenant looks at no others.
local function own_line(turn, gate)
  return sorted('$gate_line' .. turn.queue.name .. '\0' .. gate .. '\0' .. turn.tenant, turn.queue.in_turn)
end

-- ── wide turns ─────────────────────────────────────────────────────────────

local function make_wide(turn, size)
  local name = turn.queue.name .. '\0' .. turn.tenant
  turn.wide = {size = size, key = '$strands' .. name, heads = sorted('$strand_heads' .. name, nil, 8)}
end

-- Give the strands of a wide turn, each of which is read when it is asked for; one that is gone is false.
local function stored_strands(key)
  return setmetatable({}, {__index = function(strands, task)
    local bytes = look(key, task)
    strands[task] = bytes and read_strand(bytes)
    return strands[task]
  end})
end

local function widen(turn)
  local size = 0
  for _ in pairs(turn.strands) do
    size = size + 1
  end
  make_wide(turn, size)
  for task, strand in pairs(turn.strands) do
    if is_open(strand) then
      turn.wide.heads:add(strand[3], strand[4] .. task)
    elseif is_at_gate(strand) then
      own_line(turn, gate_of(strand[5])):add(0, place_of(turn, task, strand[5]))
    end
  end
end

-- Take the strands back into the record of a turn that has few again: half as many as would make it wide.
local function narrow(turn)
  local wide, strands = turn.wide, {}
  for _, task in ipairs(call('HKEYS', P .. wide.key)) do
    local _ = turn.strands[task] -- so that it is read
  end
  for task, strand in pairs(turn.strands) do
    put(wide.key, task, false)
    strands[task] = strand or nil
    if strand and is_open(strand) then
      wide.heads:remove(strand[4] .. task)
    elseif strand and is_at_gate(strand) then
      own_line(turn, gate_of(strand[5])):remove(place_of(turn, task, strand[5]))
    end
  end
  turn.strands, turn.wide = strands, nil
end

local function write_strands(turn)
  for task, strand in pairs(turn.strands) do
    put(turn.wide.key, task, strand and write_strand(strand))
  end
end

-- ── what is open, and what goes first there ────────────────────────────────
-- These three alone change it.

local function open(turn, task, strand)
  turn.open = turn.open + 1
  if turn.wide then
    turn.wide.heads:add(strand[3], strand[4] .. task)
  end
end

local function shut(turn, task, strand)
  turn.open = turn.open - 1
  if turn.wide then
    turn.wide.heads:remove(strand[4] .. task)
  end
end

local function set_head(turn, task, strand, key, id)
  if turn.wide and not strand[5] then
    turn.wide.heads:remove(strand[4] .. task)
    turn.wide.heads:add(key, id .. task)
  end
  strand[3], strand[4] = key, id
end

-- ── one strand ─────────────────────────────────────────────────────────────

local function strand_of(turn, task)
  local strand = turn.strands[task]
  if not strand then
    strand = {0, 0, 0, NO_ID, false, false, '', 1}
    turn.strands[task] = strand
    if turn.wide then
      turn.wide.size = turn.wide.size + 1
    end
  end
  return strand
end

-- A job of a strand is no longer unfinished; a strand without any is gone.
local function count_out(turn, task)
  local strand = turn.strands[task]
  strand[1] = strand[1] - 1
  if strand[1] > 0 then
    return
  end
  turn.strands[task] = nil
  if turn.wide then
    turn.strands[task] = false
    turn.wide.size = turn.wide.size - 1
  end
end

local taken = {} -- by the names of sets that nothing else is done to: the jobs that have left it, its first ones

-- Let the sets know: only at the end, since a script that fails has written nothing.
flushers[#flushers + 1] = function()
  for name, ids in pairs(taken) do
    removed[name] = ids
  end
end

local function name_of(turn, task)
  return '$strand' .. turn.queue.name .. '\0' .. turn.tenant .. '\0' .. task
end

local function jobs_of(turn, task)
  local strand = turn.strands[task]
  if not strand[6] then
    local name = name_of(turn, task)
    strand[6] = sorted(name)
    for _, id in ipairs(taken[name] or NOTHING) do
      strand[6]:remove(id)
    end
    taken[name] = nil
  end
  return strand[6]
end

local function is_first(key, id, other_key, other)
  return key < other_key or (key == other_key and is_before(id, other))
end

-- A strand's record has its head and its heirs; the sorted set has the others, and is not there if there are none.
local function is_ahead(key, id, strand)
  return is_first(key, id, strand[3], strand[4])
end

-- Count the heirs that go first; `first` is where the one after them begins.
local function heirs_before(key, id, strand)
  local heirs, first, count = strand[7], strand[8], 0
  while first < #heirs do
    local other, other_key = struct.unpack(HEIR, heirs, first)
    if is_first(key, id, other_key, other) then
      break
    end
    first, count = first + HEIR_SIZE, count + 1
  end
  return count, first
end

local function put_into_set(turn, task, key, id)
  local name = name_of(turn, task)
  if taken[name] then
    jobs_of(turn, task):add(key, id)
  else
    add(name, key, id)
  end
end

-- Put a job among the heirs. They are never more than two times those that a record gets: the last one leaves.
local function put_among_heirs(turn, task, strand, key, id)
  local heirs = strand[7]
  local _, place = heirs_before(key, id, strand)
  heirs = heirs:sub(strand[8], place - 1) .. struct.pack(HEIR, id, key) .. heirs:sub(place)
  if #heirs > 2 * HEIRS * HEIR_SIZE then
    local last, last_key = struct.unpack(HEIR, heirs, #heirs - HEIR_SIZE + 1)
    heirs = heirs:sub(1, -HEIR_SIZE - 1)
    put_into_set(turn, task, last_key, last)
  end
  strand[7], strand[8] = heirs, 1
end

local function put_behind(turn, task, key, id)
  local strand = turn.strands[task]
  local heirs = strand[7]
  if strand[8] < #heirs then
    local last, last_key = struct.unpack(HEIR, heirs, #heirs - HEIR_SIZE + 1)
    if is_first(key, id, last_key, last) then
      put_among_heirs(turn, task, strand, key, id)
      return
    end
  end
  put_into_set(turn, task, key, id)
end

-- Take a job out that is not the head.
local function take_out(turn, task, id)
  local strand = turn.strands[task]
  local heirs = strand[7]
  for first = strand[8], #heirs, HEIR_SIZE do
    if heirs:sub(first, first + 15) == id then
      strand[7], strand[8] = heirs:sub(strand[8], first - 1) .. heirs:sub(first + HEIR_SIZE), 1
      return
    end
  end
  jobs_of(turn, task):remove(id)
end

local heirs_most = HEIRS -- that a claim takes out of a set; a peek, which would have to remember them, none

-- Give the first job of a set, and let the next ones be heirs if the turn has no other strand: its record is written for
-- each job of any, and stays short.
local function take_first(turn, task, strand, name)
  local gone, more = taken[name] or {}, heirs_most
  if turn.wide or next(turn.strands, (next(turn.strands))) then
    more = 0
  end
  taken[name] = gone
  local found = call('ZRANGE', P .. name, #gone, #gone + more, 'WITHSCORES')
  for i = 1, #found, 2 do
    gone[#gone + 1] = found[i]
  end
  if found[3] then
    strand[7], strand[8] = struct.pack('>' .. ('c16d'):rep(#found / 2 - 1), unpack(found, 3)), 1
  end
  return tonumber(found[2]), found[1]
end

local function next_head(turn, task, strand)
  local heirs, first = strand[7], strand[8]
  if first < #heirs then
    local id, key = struct.unpack(HEIR, heirs, first)
    strand[8] = first + HEIR_SIZE
    set_head(turn, task, strand, key, id)
    return
  end
  local name = name_of(turn, task)
  if not (sets[name] or appended[name] or removed[name]) then
    set_head(turn, task, strand, take_first(turn, task, strand, name))
    return
  end
  local jobs = jobs_of(turn, task)
  local head = jobs:first()
  jobs:remove(head[3])
  set_head(turn, task, strand, head[1], head[3])
end

-- Give the strand of a ready turn whose head goes first.
local function first_strand(turn)
  if turn.wide then
    local task = turn.wide.heads:first()[3]:sub(17) -- after the id
    return task, turn.strands[task]
  end
  local chosen, first = next(turn.strands)
  if not next(turn.strands, chosen) then
    return chosen, first -- most have one
  end
  chosen, first = nil, nil
  for task, strand in pairs(turn.strands) do
    if is_open(strand) and (not first or is_ahead(strand[3], strand[4], first)) then
      chosen, first = task, strand
    end
  end
  return chosen, first
end
