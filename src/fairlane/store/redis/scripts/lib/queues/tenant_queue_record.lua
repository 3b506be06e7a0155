-- uses:
-- The record of a tenant queue, in the hash `tenant_queues` of its queue. Packed by hand, since scripts read and
-- write it for each job: `struct` gives all fields in one call.
-- In order: vt (two words), ready since, the counts of the six states, the number of strands, the strands; then,
-- only if anything is parked or rate-limited, a msgpack list {park, parks by task, rate state}. A wide tenant queue
-- (strands.lua) has IS_WIDE for the number of strands, then how many there are and how many of them are open.

-- Return a tenant queue with its counts under the numbers of their states, the two words of its vt, and the number
-- of strands if it is wide. `open_strands` counts strands that have ready jobs and are not parked.
local function read_tenant_queue(bytes)
  local upper, lower, since, a, b, c, d, e, f, count, at = struct.unpack(TENANT_QUEUE_FORMAT, bytes)
  local strands, open_strands, parked, rate_state, size = {}, 0, false, false, nil
  if count == IS_WIDE then
    size, open_strands, at = struct.unpack('>I4I4', bytes, at)
    count = 0
  end
  for _ = 1, count do
    local task, jobs, ready, key, id, prefetched
    task, jobs, ready, key, id, prefetched, at = struct.unpack(STRAND_FORMAT, bytes, at)
    strands[task] = {jobs, ready, key, id, false, false, prefetched, 1}
    open_strands = ready > 0 and open_strands + 1 or open_strands
  end
  if at <= #bytes then
    local rest = cmsgpack.unpack(bytes:sub(at))
    parked, rate_state = rest[1], rest[3]
    for task, park in pairs(rest[2]) do
      strands[task][PARKED] = park
      open_strands = strands[task][READY_COUNT] > 0 and open_strands - 1 or open_strands
    end
  end
  local tenant_queue = { -- in one go, and 16 fields: a table that grows is allocated anew
    a, b, c, d, e, f, queue = false, tenant = false, since = since, rate_state = rate_state, parked = parked,
    strands = strands, open_strands = open_strands, is_ready = false, is_changed = false, is_moved = false,
    limits = false, stride = false, stored = false, was_index = false, vt = 0, wide = false,
  }
  return tenant_queue, upper, lower, size
end

local NEW_TENANT_QUEUE = struct.pack(TENANT_QUEUE_FORMAT, VT_ZERO, 0, 0, 0, 0, 0, 0, 0, 0, 0)

-- Return nil if there are more strands than a record may have.
local function pack_tenant_queue(tenant_queue, upper, lower)
  local a, b, c, d, e, f = unpack(tenant_queue, 1, STATES)
  local since, strands = tenant_queue.since, tenant_queue.strands
  local parked, rate_state = tenant_queue.parked, tenant_queue.rate_state
  local task, strand = next(strands)
  if task and not next(strands, task) and not (strand[PARKED] or parked or rate_state) then
    local prefetched = strand[PREFETCHED]:sub(strand[PREFETCHED_AT])
    return struct.pack(
      ONE_STRAND_FORMAT, upper, lower, since, a, b, c, d, e, f, 1,
      task, strand[JOB_COUNT], strand[READY_COUNT], strand[HEAD_KEY], strand[HEAD_ID], #prefetched, prefetched
    )
  end
  local bytes, count, parks = '', 0, nil
  for name, one in pairs(strands) do
    local prefetched = one[PREFETCHED]:sub(one[PREFETCHED_AT])
    bytes = bytes .. struct.pack(
      STRAND_FORMAT, name, one[JOB_COUNT], one[READY_COUNT], one[HEAD_KEY], one[HEAD_ID], #prefetched, prefetched
    )
    count = count + 1
    if count > MAX_INLINE_STRANDS then
      return nil
    end
    if one[PARKED] then
      parks = parks or {}
      parks[name] = one[PARKED]
    end
  end
  if parked or parks or rate_state then
    bytes = bytes .. cmsgpack.pack({parked, parks or {}, rate_state})
  end
  return struct.pack(TENANT_QUEUE_FORMAT, upper, lower, since, a, b, c, d, e, f, count) .. bytes
end

local function pack_wide_tenant_queue(tenant_queue, upper, lower)
  local a, b, c, d, e, f = unpack(tenant_queue, 1, STATES)
  local bytes = struct.pack(TENANT_QUEUE_FORMAT, upper, lower, tenant_queue.since, a, b, c, d, e, f, IS_WIDE)
    .. struct.pack('>I4I4', tenant_queue.wide.size, tenant_queue.open_strands)
  if tenant_queue.parked or tenant_queue.rate_state then
    bytes = bytes .. cmsgpack.pack({tenant_queue.parked, {}, tenant_queue.rate_state})
  end
  return bytes
end

local function read_strand(bytes)
  local jobs, ready, key, id, prefetched, at = struct.unpack(STORED_STRAND_FORMAT, bytes)
  return {jobs, ready, key, id, at <= #bytes and cmsgpack.unpack(bytes:sub(at)), false, prefetched, 1}
end

local function write_strand(strand)
  local prefetched = strand[PREFETCHED]:sub(strand[PREFETCHED_AT])
  local bytes = struct.pack(
    STORED_STRAND_FORMAT, strand[JOB_COUNT], strand[READY_COUNT], strand[HEAD_KEY], strand[HEAD_ID], #prefetched,
    prefetched
  )
  return strand[PARKED] and bytes .. cmsgpack.pack(strand[PARKED]) or bytes
end
