-- uses:
-- The body of a job, msgpack: what only edits, scrubs and metadata change (JobBody in records/job.py). It has byte strings, which
-- the msgpack of the server cannot read: their lengths are read here. Touches no key.

-- Return where the byte string that begins after byte `at` ends.
local function skip_bytes(body, at)
  local kind = byte(body, at + 1)
  local length, first = struct.unpack(kind == 0xc4 and 'B' or kind == 0xc5 and '>I2' or '>I4', body, at + 2)
  return first + length - 1, first
end

-- Return the fields of a body by their positions. A body of an older layout ends early.
local function read_body(body)
  local fields, at, size = {}, 1, #body
  for position = 1, #BODY_KINDS do
    if at >= size then
      break
    end
    if (BODY_KINDS):sub(position, position) == 'v' or byte(body, at + 1) == 0xc0 then -- nil
      at, fields[position] = cmsgpack.unpack_limit(body, 1, at)
      at = at == -1 and size or at
    else
      local last, first = skip_bytes(body, at)
      fields[position], at = body:sub(first, last), last
    end
  end
  return fields
end

-- Return a body with other metadata. What stands before it is in every body, and none of it is nil.
local function with_metadata(body, metadata)
  local at = 1
  for position = 1, BODY_METADATA - 1 do
    local is_bytes = (BODY_KINDS):sub(position, position) == 'b'
    at = (is_bytes and skip_bytes(body, at)) or (not is_bytes and cmsgpack.unpack_limit(body, 1, at))
  end
  local last, length = skip_bytes(body, at), #metadata
  local kind = length < 256 and struct.pack('BB', 0xc4, length) or length < 65536 and struct.pack('>BI2', 0xc5, length)
    or struct.pack('>BI4', 0xc6, length)
  return body:sub(1, at) .. kind .. metadata .. body:sub(last + 1)
end

-- Return how often a job may be tried, and whether at most once: two fields that stand side by side in every body, soon
-- after the first one, the payload. What is unpacked behind that begins with a number, which takes its position.
local function attempt_limits(body)
  local payload_end = skip_bytes(body, 1)
  return select(BODY_MAX_ATTEMPTS, cmsgpack.unpack_limit(body, BODY_AT_MOST_ONCE - BODY_PAYLOAD, payload_end))
end
