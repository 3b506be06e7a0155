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

-- Say whether a job was never claimed, and neither expires nor frees a key when it is.
local function is_plain(bytes)
  if bytes:byte() ~= 1 then -- IS_SHORT
    return false
  end
  local _, _, _, is_dedup_short, _, _, expires_at = struct.unpack(BIRTH_NUMBERS, bytes)
  return expires_at == 0 and is_dedup_short == 0
end

-- Give the second half of the head of any job that is claimed for the first time, and the whole head of one.
local function first_life(worker, lease_until)
  local life = {struct.unpack(LIFE_FORM, NO_LIFE)}
  local before = BIRTH_FIELDS
  life[ATTEMPT - before], life[FENCE - before], life[STARTED_AT - before] = 1, NOW, NOW
  life[LEASE_UNTIL - before], life[WORKER - before] = lease_until, worker
  return struct.pack(LIFE_FORM, unpack(life, 1, FIELDS - before))
end

local function claimed_first(bytes, life)
  return CLAIMED .. bytes:sub(3) .. life
end

-- ── the record of a turn, in the hash "turns" of its queue ─────────────────────────────────────────────────
-- Its place (clock in two words, ready since), counts of the six states, strands; then, if anything of it is parked or
-- counted against a rate, what and why, and the arrival and pace of its rate. Of a wide one it has how many strands there
-- are and how many of them are open, and each strand is a record of its own (strands.lua).

-- Give a turn, with the counts under the numbers of their states, and both words of its clock; then how many strands it
-- has if it is wide. `open` is how many of its strands are ready and not parked.
local function read_turn(bytes)
  local upper, lower, since, a, b, c, d, e, f, count, at = struct.unpack(TURN, bytes)
  local strands, open, parked, arrival, size = {}, 0, false, false, nil
  if count == WIDE then
    size, open, at = struct.unpack('>I4I4', bytes, at)
    count = 0
  end
  for _ = 1, count do
    local task, jobs, ready, key, id, heirs
    task, jobs, ready, key, id, heirs, at = struct.unpack(STRAND, bytes, at)
    strands[task] = {jobs, ready, key, id, false, false, heirs, 1}
    open = ready > 0 and open + 1 or open
  end
  if at <= #bytes then
    local rest = cmsgpack.unpack(bytes:sub(at))
    parked, arrival = rest[1], rest[3]
    for task, park in pairs(rest[2]) do
      strands[task][5] = park
      open = strands[task][2] > 0 and open - 1 or open
    end
  end
  local turn = { -- all at once, and 16 fields: a table that grows is made anew each time
    a, b, c, d, e, f, queue = false, tenant = false, since = since, arrival = arrival, parked = parked,
    strands = strands, open = open, is_ready = false, is_changed = false, is_moved = false, limits = false,
    stride = false, stored = false, was_line = false, clock = 0, wide = false,
  }
  return turn, upper, lower, size
end

local NO_TURN = struct.pack(TURN, ZERO, 0, 0, 0, 0, 0, 0, 0, 0, 0)

-- Nothing, if it has more strands than a record may have.
local function write_turn(turn, upper, lower)
  local a, b, c, d, e, f = unpack(turn, 1, STATES)
  local since, strands, parked, arrival = turn.since, turn.strands, turn.parked, turn.arrival
  local task, strand = next(strands)
  if task and not next(strands, task) and not (strand[5] or parked or arrival) then
    local heirs = strand[7]:sub(strand[8])
    return struct.pack(
      TURN_OF_ONE, upper, lower, since, a, b, c, d, e, f, 1,
      task, strand[1], strand[2], strand[3], strand[4], #heirs, heirs
    )
  end
  local bytes, count, parks = '', 0, nil
  for name, one in pairs(strands) do
    local heirs = one[7]:sub(one[8])
    bytes = bytes .. struct.pack(STRAND, name, one[1], one[2], one[3], one[4], #heirs, heirs)
    count = count + 1
    if count > INLINE_MOST then
      return nil
    end
    if one[5] then
      parks = parks or {}
      parks[name] = one[5]
    end
  end
  if parked or parks or arrival then
    bytes = bytes .. cmsgpack.pack({parked, parks or {}, arrival})
  end
  return struct.pack(TURN, upper, lower, since, a, b, c, d, e, f, count) .. bytes
end

local function write_wide(turn, upper, lower)
  local a, b, c, d, e, f = unpack(turn, 1, STATES)
  local bytes = struct.pack(TURN, upper, lower, turn.since, a, b, c, d, e, f, WIDE)
    .. struct.pack('>I4I4', turn.wide.size, turn.open)
  if turn.parked or turn.arrival then
    bytes = bytes .. cmsgpack.pack({turn.parked, {}, turn.arrival})
  end
  return bytes
end

local function read_strand(bytes)
  local jobs, ready, key, id, heirs, at = struct.unpack(LONE_STRAND, bytes)
  return {jobs, ready, key, id, at <= #bytes and cmsgpack.unpack(bytes:sub(at)), false, heirs, 1}
end

local function write_strand(strand)
  local heirs = strand[7]:sub(strand[8])
  local bytes = struct.pack(LONE_STRAND, strand[1], strand[2], strand[3], strand[4], #heirs, heirs)
  return strand[5] and bytes .. cmsgpack.pack(strand[5]) or bytes
end
