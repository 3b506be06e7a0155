-- Records, packed by hand since they are what scripts read and write most: `struct` gives all fields at once, and a
-- table that is made of them has its size from the start.

-- ── the head of a job: its fields and their forms are in heads.py; a flag is 0 or 1 ───────────────────────────

local function read_head(bytes)
  if bytes:byte() == 1 then -- IS_SHORT
    bytes = bytes .. NO_LIFE
  end
  return {struct.unpack(HEAD_FORM, bytes)}
end

local function write_head(head)
  if head[ATTEMPT] == 0 and head[SETTLED_AT] == 0 then
    head[IS_SHORT] = 1
    return struct.pack(BIRTH_FORM, unpack(head, 1, BIRTH_FIELDS))
  end
  head[IS_SHORT] = 0
  return struct.pack(HEAD_FORM, unpack(head, 1, FIELDS))
end

-- ── the record of a turn, in the hash "turns" of its queue ─────────────────────────────────────────────────
-- Clock, ready since, counts of the six states, arrival and pace of its rate, strands; then, if anything of it is
-- parked, what and why. A strand is {jobs, ready, sort key and id of its head, parked}; a script adds
-- the set of its other ready jobs.

local TURN, STRAND = '>c8I6I4I4I4I4I4I4I8sI2', '>sI4I4dc16'
local NO_ID = string.rep('\0', 16)

local function read_turn(bytes)
  local clock, since, a, b, c, d, e, f, arrival, pace, count, at = struct.unpack(TURN, bytes)
  local strands = {}
  for _ = 1, count do
    local task, jobs, ready, key, id
    task, jobs, ready, key, id, at = struct.unpack(STRAND, bytes, at)
    strands[task] = {jobs, ready, key, id, false, false}
  end
  local parked = false
  if at <= #bytes then
    local parks = cmsgpack.unpack(bytes:sub(at))
    parked = parks[1]
    for task, park in pairs(parks[2]) do
      strands[task][5] = park
    end
  end
  return clock, since, {a, b, c, d, e, f}, arrival > 0 and {arrival, pace}, parked, strands
end

-- Give the place in the ready index that a record stands for, without the tenant: clock and "ready since".
local function place_in_record(bytes)
  return bytes:sub(1, 8) .. '\0\0' .. bytes:sub(9, 14)
end

local function write_turn(clock, since, counts, arrival, parked, strands)
  local bytes, count, parks = '', 0, nil
  for task, strand in pairs(strands) do
    bytes = bytes .. struct.pack(STRAND, task, strand[1], strand[2], strand[3], strand[4])
    count = count + 1
    if strand[5] then
      parks = parks or {}
      parks[task] = strand[5]
    end
  end
  if parked or parks then
    bytes = bytes .. cmsgpack.pack({parked, parks or {}})
  end
  local a, b, c, d, e, f = unpack(counts)
  local at, pace = 0, ''
  if arrival then
    at, pace = arrival[1], arrival[2]
  end
  return struct.pack(TURN, clock, since, a, b, c, d, e, f, at, pace, count) .. bytes
end
