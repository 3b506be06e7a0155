-- uses: queues/tenant_queue_record limits/breakers
-- Strands: the unfinished jobs of a tenant queue by task. A strand is {JOB_COUNT, READY_COUNT, HEAD_KEY, HEAD_ID,
-- PARKED, JOB_SET, PREFETCHED, PREFETCHED_AT}. Its first ready job is its head. The next few are PREFETCHED, packed
-- in the record from byte PREFETCHED_AT on: a claim takes several out of the sorted set at once, so that most claims
-- do not read the set. The other ready jobs are in the set JOB_SET.
-- Nearly all tenant queues have one strand, and those with a few have them in their record. One with more than
-- MAX_INLINE_STRANDS is wide: its strands are fields of a hash, and the heads of its open strands are in a sorted
-- set, so that a script reads and writes only the strands it touches.
-- Sorted sets `strand` by queue, tenant and task (JOB_SET), `strand_heads` by queue and tenant, `gate_waiters`; hash
-- `strands` by queue and tenant.

local function is_strand_open(strand)
  return strand[READY_COUNT] > 0 and not strand[PARKED]
end

-- ── parked strands (parking.lua) ─────────────────────────────────────────────

-- Return the member under which a tenant queue (task '') or a strand stands in the sets of what is parked.
local function park_member(tenant_queue, task, parked)
  return parked[PARK_VT] .. struct.pack('>I8', parked[PARK_SINCE]) .. task .. '\0' .. tenant_queue.tenant
end

-- Return the gate, or the breaker as `explain` names it, that holds it.
local function gate_of(parked)
  if breakers.is_line(parked[SUBJECT]) then
    return parked[SUBJECT]
  end
  return parked[SUBJECT]:sub(1, 5) == 'gate ' and parked[SUBJECT]:sub(6) or nil
end

-- Say whether it waits in the line of its gate or breaker.
local function is_in_line(parked)
  return parked and (parked[REASON] == 'gate' or parked[REASON] == 'breaker')
end

-- Return the set of a wide tenant queue's own strands at a gate: a peek for one tenant reads no others.
local function own_gate_waiters(tenant_queue, gate)
  local queue = tenant_queue.queue
  return sorted_set('$gate_waiters' .. queue.name .. '\0' .. gate .. '\0' .. tenant_queue.tenant, queue.by_vt)
end

-- ── wide tenant queues ───────────────────────────────────────────────────────

local function make_wide(tenant_queue, size)
  local name = tenant_queue.queue.name .. '\0' .. tenant_queue.tenant
  tenant_queue.wide = {size = size, key = '$strands' .. name, heads = sorted_set('$strand_heads' .. name, nil, 8)}
end

-- Return the strands of a wide tenant queue, each read when it is asked for; one that is gone is false.
local function stored_strands(key)
  return setmetatable({}, {__index = function(strands, task)
    local bytes = hget(key, task)
    strands[task] = bytes and read_strand(bytes)
    return strands[task]
  end})
end

-- Make a tenant queue wide: too many strands for its record.
local function move_strands_to_hash(tenant_queue)
  local size = 0
  for _ in pairs(tenant_queue.strands) do
    size = size + 1
  end
  make_wide(tenant_queue, size)
  for task, strand in pairs(tenant_queue.strands) do
    if is_strand_open(strand) then
      tenant_queue.wide.heads:add(strand[HEAD_KEY], strand[HEAD_ID] .. task)
    elseif is_in_line(strand[PARKED]) then
      own_gate_waiters(tenant_queue, gate_of(strand[PARKED])):add(0, park_member(tenant_queue, task, strand[PARKED]))
    end
  end
end

-- Take the strands back into the record once there are half as many as made it wide.
local function move_strands_to_record(tenant_queue)
  local wide, strands = tenant_queue.wide, {}
  for _, task in ipairs(call('HKEYS', PREFIX .. wide.key)) do
    local _ = tenant_queue.strands[task] -- reads it
  end
  for task, strand in pairs(tenant_queue.strands) do
    hset(wide.key, task, false)
    strands[task] = strand or nil
    if strand and is_strand_open(strand) then
      wide.heads:remove(strand[HEAD_ID] .. task)
    elseif strand and is_in_line(strand[PARKED]) then
      own_gate_waiters(tenant_queue, gate_of(strand[PARKED])):remove(park_member(tenant_queue, task, strand[PARKED]))
    end
  end
  tenant_queue.strands, tenant_queue.wide = strands, nil
end

local function write_strands(tenant_queue)
  for task, strand in pairs(tenant_queue.strands) do
    hset(tenant_queue.wide.key, task, strand and write_strand(strand))
  end
end

-- ── open strands and their heads: only these three change them ───────────────

local function open_strand(tenant_queue, task, strand)
  tenant_queue.open_strands = tenant_queue.open_strands + 1
  if tenant_queue.wide then
    tenant_queue.wide.heads:add(strand[HEAD_KEY], strand[HEAD_ID] .. task)
  end
end

local function close_strand(tenant_queue, task, strand)
  tenant_queue.open_strands = tenant_queue.open_strands - 1
  if tenant_queue.wide then
    tenant_queue.wide.heads:remove(strand[HEAD_ID] .. task)
  end
end

local function set_strand_head(tenant_queue, task, strand, key, id)
  if tenant_queue.wide and not strand[PARKED] then
    tenant_queue.wide.heads:remove(strand[HEAD_ID] .. task)
    tenant_queue.wide.heads:add(key, id .. task)
  end
  strand[HEAD_KEY], strand[HEAD_ID] = key, id
end

-- ── one strand ───────────────────────────────────────────────────────────────

local function strand_of(tenant_queue, task)
  local strand = tenant_queue.strands[task]
  if not strand then
    strand = {0, 0, 0, NO_ID, false, false, '', 1}
    tenant_queue.strands[task] = strand
    if tenant_queue.wide then
      tenant_queue.wide.size = tenant_queue.wide.size + 1
    end
  end
  return strand
end

-- Count one unfinished job less; a strand without any is removed.
local function count_finished(tenant_queue, task)
  local strand = tenant_queue.strands[task]
  strand[JOB_COUNT] = strand[JOB_COUNT] - 1
  if strand[JOB_COUNT] > 0 then
    return
  end
  tenant_queue.strands[task] = nil
  if tenant_queue.wide then
    tenant_queue.strands[task] = false
    tenant_queue.wide.size = tenant_queue.wide.size - 1
  end
end

-- By name of a set from which this script only takes first jobs: the ids it has taken.
local taken_from_sets = {}

-- Remove them from their sets at the end only: a script that fails has written nothing.
before_commit[#before_commit + 1] = function()
  for name, ids in pairs(taken_from_sets) do
    removed_members[name] = ids
  end
end

local function strand_key(tenant_queue, task)
  return '$strand' .. tenant_queue.queue.name .. '\0' .. tenant_queue.tenant .. '\0' .. task
end

local function strand_set(tenant_queue, task)
  local strand = tenant_queue.strands[task]
  if not strand[JOB_SET] then
    local name = strand_key(tenant_queue, task)
    strand[JOB_SET] = sorted_set(name)
    for _, id in ipairs(taken_from_sets[name] or EMPTY) do
      strand[JOB_SET]:remove(id)
    end
    taken_from_sets[name] = nil
  end
  return strand[JOB_SET]
end

local function key_before(key, id, other_key, other)
  return key < other_key or (key == other_key and bytes_before(id, other))
end

local function before_head(key, id, strand)
  return key_before(key, id, strand[HEAD_KEY], strand[HEAD_ID])
end

-- Count the prefetched jobs that go before a key. Return also where the one after them begins.
local function prefetched_before(key, id, strand)
  local prefetched, first, count = strand[PREFETCHED], strand[PREFETCHED_AT], 0
  while first < #prefetched do
    local other, other_key = struct.unpack(PREFETCHED_FORMAT, prefetched, first)
    if key_before(key, id, other_key, other) then
      break
    end
    first, count = first + PREFETCHED_SIZE, count + 1
  end
  return count, first
end

local function add_to_strand_set(tenant_queue, task, key, id)
  local name = strand_key(tenant_queue, task)
  if taken_from_sets[name] then
    strand_set(tenant_queue, task):add(key, id)
  else
    zadd(name, key, id)
  end
end

-- Put a job among the prefetched ones. There are at most twice as many as one read takes: the last one goes back.
local function insert_prefetched(tenant_queue, task, strand, key, id)
  local prefetched = strand[PREFETCHED]
  local _, place = prefetched_before(key, id, strand)
  local new = struct.pack(PREFETCHED_FORMAT, id, key)
  prefetched = prefetched:sub(strand[PREFETCHED_AT], place - 1) .. new .. prefetched:sub(place)
  if #prefetched > 2 * PREFETCH * PREFETCHED_SIZE then
    local last, last_key = struct.unpack(PREFETCHED_FORMAT, prefetched, #prefetched - PREFETCHED_SIZE + 1)
    prefetched = prefetched:sub(1, -PREFETCHED_SIZE - 1)
    add_to_strand_set(tenant_queue, task, last_key, last)
  end
  strand[PREFETCHED], strand[PREFETCHED_AT] = prefetched, 1
end

local function insert_behind_head(tenant_queue, task, key, id)
  local strand = tenant_queue.strands[task]
  local prefetched = strand[PREFETCHED]
  if strand[PREFETCHED_AT] < #prefetched then
    local last, last_key = struct.unpack(PREFETCHED_FORMAT, prefetched, #prefetched - PREFETCHED_SIZE + 1)
    if key_before(key, id, last_key, last) then
      insert_prefetched(tenant_queue, task, strand, key, id)
      return
    end
  end
  add_to_strand_set(tenant_queue, task, key, id)
end

-- Remove a job that is not the head.
local function remove_behind_head(tenant_queue, task, id)
  local strand = tenant_queue.strands[task]
  local prefetched = strand[PREFETCHED]
  for first = strand[PREFETCHED_AT], #prefetched, PREFETCHED_SIZE do
    if prefetched:sub(first, first + 15) == id then
      strand[PREFETCHED] = prefetched:sub(strand[PREFETCHED_AT], first - 1) .. prefetched:sub(first + PREFETCHED_SIZE)
      strand[PREFETCHED_AT] = 1
      return
    end
  end
  strand_set(tenant_queue, task):remove(id)
end

local max_prefetch = PREFETCH -- 0 for a peek, which would have to remember them

-- Take the first job out of a set. Prefetch the next ones if the tenant queue has no other strand: its record is
-- written for each job, and must stay short.
local function take_from_set(tenant_queue, task, strand, name)
  local gone, more = taken_from_sets[name] or {}, max_prefetch
  if tenant_queue.wide or next(tenant_queue.strands, (next(tenant_queue.strands))) then
    more = 0
  end
  taken_from_sets[name] = gone
  local found = call('ZRANGE', PREFIX .. name, #gone, #gone + more, 'WITHSCORES')
  for i = 1, #found, 2 do
    gone[#gone + 1] = found[i]
  end
  if found[3] then
    strand[PREFETCHED] = struct.pack('>' .. ('c16d'):rep(#found / 2 - 1), unpack(found, 3))
    strand[PREFETCHED_AT] = 1
  end
  return tonumber(found[2]), found[1]
end

local function advance_head(tenant_queue, task, strand)
  local prefetched, first = strand[PREFETCHED], strand[PREFETCHED_AT]
  if first < #prefetched then
    local id, key = struct.unpack(PREFETCHED_FORMAT, prefetched, first)
    strand[PREFETCHED_AT] = first + PREFETCHED_SIZE
    set_strand_head(tenant_queue, task, strand, key, id)
    return
  end
  local name = strand_key(tenant_queue, task)
  if not (sorted_sets[name] or new_entries[name] or removed_members[name]) then
    set_strand_head(tenant_queue, task, strand, take_from_set(tenant_queue, task, strand, name))
    return
  end
  local jobs = strand_set(tenant_queue, task)
  local head = jobs:first()
  jobs:remove(head[MEMBER])
  set_strand_head(tenant_queue, task, strand, head[SCORE], head[MEMBER])
end

-- Return the strand of a ready tenant queue whose head goes first.
local function first_strand(tenant_queue)
  if tenant_queue.wide then
    local task = tenant_queue.wide.heads:first()[MEMBER]:sub(17) -- after the id
    return task, tenant_queue.strands[task]
  end
  local chosen, first = next(tenant_queue.strands)
  if not next(tenant_queue.strands, chosen) then
    return chosen, first -- most have one strand
  end
  chosen, first = nil, nil
  for task, strand in pairs(tenant_queue.strands) do
    if is_strand_open(strand) and (not first or before_head(strand[HEAD_KEY], strand[HEAD_ID], first)) then
      chosen, first = task, strand
    end
  end
  return chosen, first
end
