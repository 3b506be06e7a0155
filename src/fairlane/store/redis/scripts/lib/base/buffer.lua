-- uses:
-- The instant, and reads and writes of hashes through a buffer. Every script begins with this file. Nothing is
-- written before `commit`: a script that fails has changed nothing, and a peek is a claim that does not commit. Reads
-- see what this script has changed.
-- KEYS[1]: the prefix of the installation with its hash tag. ARGV[1]: the instant ('' for the server's clock).

local call, pack, unpack_one = redis.call, cmsgpack.pack, cmsgpack.unpack
local floor, byte = math.floor, string.byte
local PREFIX, EMPTY = KEYS[1], {}
local NOW
if ARGV[1] ~= '' then
  NOW = tonumber(ARGV[1])
else
  local time = call('TIME')
  NOW = time[1] * 1000000 + time[2]
end

-- A large batch comes in by several scripts (jobs/batch_step.lua). Until it is in, every other script refuses: its
-- client finishes the batch first. So nobody sees half of a batch.
if not IS_BATCH_STEP and call('EXISTS', PREFIX .. '$batch') == 1 then
  return redis.error_reply('BATCH on its way in')
end

local function call_in_chunks(command, key, values)
  local count = #values
  if count > 0 and count <= MAX_ARGUMENTS then
    call(command, key, unpack(values))
    return
  end
  for first = 1, count, MAX_ARGUMENTS do
    call(command, key, unpack(values, first, math.min(first + MAX_ARGUMENTS - 1, count)))
  end
end

-- ── hashes ───────────────────────────────────────────────────────────────────

local changed_fields = {} -- what this script has changed, by key and field

local function hmget(key, fields)
  local found, count = {}, #fields
  if count > 0 and count <= MAX_ARGUMENTS and not changed_fields[key] then
    return call('HMGET', PREFIX .. key, unpack(fields))
  end
  for first = 1, count, MAX_ARGUMENTS do
    local last = math.min(first + MAX_ARGUMENTS - 1, count)
    local values = call('HMGET', PREFIX .. key, unpack(fields, first, last))
    for i = 1, last - first + 1 do
      found[first + i - 1] = values[i]
    end
  end
  local changes = changed_fields[key]
  for i = 1, changes and count or 0 do
    if changes[fields[i]] ~= nil then
      found[i] = changes[fields[i]]
    end
  end
  return found
end

-- Set a field; the value false removes it.
local function hset(key, field, value)
  local changes = changed_fields[key]
  if not changes then
    changes = {}
    changed_fields[key] = changes
  end
  changes[field] = value
end

local function hget(key, field)
  local changes = changed_fields[key]
  if changes and changes[field] ~= nil then
    return changes[field]
  end
  return call('HGET', PREFIX .. key, field)
end

-- ── entries that are new ─────────────────────────────────────────────────────

local new_entries, removed_members = {}, {} -- by key

-- Add an entry that is certainly new, to a hash or a sorted set. No later read of this script finds it, except by
-- `find_new`; that takes half the time of a buffered write.
local function add_new(command, key, first, second)
  local list = new_entries[key]
  if not list then
    new_entries[key] = {first, second, command = command} -- in one go: a table that grows is allocated anew
    return
  end
  local count = #list
  list[count + 1], list[count + 2] = first, second
end

local function find_new(key, field)
  local list = new_entries[key] or {}
  for i = 1, #list, 2 do
    if list[i] == field then
      return list[i + 1]
    end
  end
end

-- ── bytes ────────────────────────────────────────────────────────────────────

-- Split a string of ids, 16 bytes each.
local function split_ids(bytes)
  local ids = {}
  for i = 1, #bytes / 16 do
    ids[i] = bytes:sub(i * 16 - 15, i * 16)
  end
  return ids
end

-- Compare by bytes, as sorted sets do. Lua's own `<` compares strings by the locale of the server.
local function bytes_before(a, b)
  local shorter = math.min(#a, #b)
  for i = 1, shorter do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end
