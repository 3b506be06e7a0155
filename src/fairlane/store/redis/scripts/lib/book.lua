-- What one script knows and has changed: nothing is written before `commit`, so that a claim can
-- also be tried without effect (a peek). Sorted sets and hashes here answer with the changes of this script laid over what is
-- stored. Parameters: KEYS[1] the installation's prefix with its hash tag, ARGV[1] the tests' instant or ''.

local call, pack, unpack_one = redis.call, cmsgpack.pack, cmsgpack.unpack
local floor, byte = math.floor, string.byte
local P = KEYS[1]
local NOW
if ARGV[1] ~= '' then
  NOW = tonumber(ARGV[1])
else
  local time = call('TIME')
  NOW = time[1] * 1000000 + time[2]
end

-- A batch that comes in by several scripts is in before anything else happens: everybody helps it along.
if not IS_FOLDING and call('EXISTS', P .. '$batch') == 1 then
  return redis.error_reply('BATCH on its way in')
end

local function in_chunks(command, key, values)
  local count = #values
  if count > 0 and count <= CHUNK then
    call(command, key, unpack(values))
    return
  end
  for first = 1, count, CHUNK do
    call(command, key, unpack(values, first, math.min(first + CHUNK - 1, count)))
  end
end

local hashes = {} -- what this script has changed, by key and field

local function read_fields(key, fields)
  local found, count = {}, #fields
  if count > 0 and count <= CHUNK and not hashes[key] then
    return call('HMGET', P .. key, unpack(fields))
  end
  for first = 1, count, CHUNK do
    local last = math.min(first + CHUNK - 1, count)
    local values = call('HMGET', P .. key, unpack(fields, first, last))
    for i = 1, last - first + 1 do
      found[first + i - 1] = values[i]
    end
  end
  local changes = hashes[key]
  for i = 1, changes and count or 0 do
    if changes[fields[i]] ~= nil then
      found[i] = changes[fields[i]]
    end
  end
  return found
end

local function read_ids(bytes) -- 16 each
  local ids = {}
  for i = 1, #bytes / 16 do
    ids[i] = bytes:sub(i * 16 - 15, i * 16)
  end
  return ids
end

-- Lua's own `<` compares strings by the server's locale; ids and names go by their bytes.
local function is_before(a, b)
  local shorter = math.min(#a, #b)
  for i = 1, shorter do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local function goes_first(a, b)
  if a[1] ~= b[1] then
    return a[1] < b[1]
  end
  if a[2] ~= b[2] then
    return a[2] < b[2]
  end
  return is_before(a[3], b[3])
end

local function push(heap, entry)
  local i = #heap + 1
  while i > 1 do
    local above = floor(i / 2)
    if not goes_first(entry, heap[above]) then
      break
    end
    heap[i] = heap[above]
    i = above
  end
  heap[i] = entry
end

local function pop(heap)
  local count = #heap
  local last = heap[count]
  heap[count] = nil
  count = count - 1
  if count == 0 then
    return
  end
  local i = 1
  while true do
    local below = i * 2
    if below > count then
      break
    end
    if below < count and goes_first(heap[below + 1], heap[below]) then
      below = below + 1
    end
    if not goes_first(heap[below], last) then
      break
    end
    heap[i] = heap[below]
    i = below
  end
  heap[i] = last
end

-- ── hashes ─────────────────────────────────────────────────────────────────

local function put(key, field, value) -- false removes it
  local changes = hashes[key]
  if not changes then
    changes = {}
    hashes[key] = changes
  end
  changes[field] = value
end

local function look(key, field)
  local changes = hashes[key]
  if changes and changes[field] ~= nil then
    return changes[field]
  end
  return call('HGET', P .. key, field)
end

-- ── what is new ────────────────────────────────────────────────────────────

local appended, removed = {}, {} -- by key

-- Add what is new for sure, to a list: that takes half the time of laying it over what is stored.
local function append(command, key, first, second)
  local list = appended[key]
  if not list then
    appended[key] = {first, second, command = command} -- all at once: a table that grows is made anew each time
    return
  end
  local count = #list
  list[count + 1], list[count + 2] = first, second
end

local function look_among_new(key, field)
  local list = appended[key] or {}
  for i = 1, #list, 2 do
    if list[i] == field then
      return list[i + 1]
    end
  end
end

-- ── sorted sets ────────────────────────────────────────────────────────────

local sets = {}
local Set = {}
Set.__index = Set

local NO_PAGE = {}

local function by_score(member, score)
  return {tonumber(score), 0, member}
end

-- Give the set of a key. Its entries are {first, second, member}, in this order; `read` makes one of what is
-- stored, and says how the set is ordered beyond its scores.
local function sorted(key, read, size)
  local set = sets[key]
  if not set then
    set = setmetatable({ -- all at once: a table that grows is made anew each time
      key = P .. key, read = read or by_score, size = size or 2, changed = {}, is_changed = false, heap = false,
      fresh = false, page = NO_PAGE, at = 1, rank = 0, is_all = false, entry = false,
    }, Set)
    sets[key] = set
    for _, member in ipairs(removed[key] or NO_PAGE) do
      set:remove(member)
    end
    removed[key] = nil
    local new = appended[key] or NO_PAGE
    set.heap, set.fresh = new[1] and {} or false, new[1] and {} or false -- in this order: a peek's lie as in a heap
    for i = 1, #new, 2 do
      set:add(new[i], new[i + 1])
    end
    appended[key] = nil
  end
  return set
end

-- Add to a set of which this script may ask nothing.
local function add(key, score, member)
  if sets[key] then
    sets[key]:add(score, member)
  else
    append('ZADD', key, score, member)
  end
end

-- Remove from such a set, before anything is added to it: what is done both to stays.
local function remove(key, member)
  if sets[key] then
    sets[key]:remove(member)
    return
  end
  local list = removed[key]
  if not list then
    removed[key] = {member}
    return
  end
  list[#list + 1] = member
end

function Set:add(score, member)
  self.changed[member] = score
  self.is_changed = true
  if self.heap then
    self.fresh[#self.fresh + 1] = member
  else
    self.fresh = true
  end
end

function Set:remove(member)
  self.changed[member] = false
  self.is_changed = true
end

function Set:sort_in(member, score)
  if score then
    local entry = self.read(member, score)
    entry[4] = score
    push(self.heap, entry)
  end
end

-- Sort in what was added: only a set that is asked for its first pays for that.
function Set:settle()
  if not self.heap then
    self.heap = {}
    for member, score in pairs(self.changed) do
      self:sort_in(member, score)
    end
  else
    for _, member in ipairs(self.fresh) do
      self:sort_in(member, self.changed[member])
    end
  end
  self.fresh = {}
end

function Set:fetch()
  local stored = call('ZRANGE', self.key, self.rank, self.rank + self.size - 1, 'WITHSCORES')
  self.is_all = #stored < self.size * 2
  self.rank = self.rank + self.size
  self.size = math.min(self.size * 4, 128)
  self.page, self.at = stored, 1
end

function Set:first_stored()
  local changed = self.changed
  while true do
    local member = self.page[self.at]
    if member == nil then
      if self.is_all then
        return nil
      end
      self:fetch()
      self.entry = false
    elseif changed[member] ~= nil then
      self.at, self.entry = self.at + 2, false -- what was changed is in the heap, or gone
    else
      break
    end
  end
  if not self.entry then
    self.entry = self.read(self.page[self.at], self.page[self.at + 1])
  end
  return self.entry
end

function Set:first_added()
  if self.fresh == true or (self.fresh and self.fresh[1]) then
    self:settle()
  end
  local heap, changed = self.heap, self.changed
  while heap and heap[1] and changed[heap[1][3]] ~= heap[1][4] do
    pop(heap)
  end
  return heap and heap[1] or nil
end

-- Give the entry that goes first, with all changes so far; nil if there is none.
function Set:first()
  local stored, added = self:first_stored(), self:first_added()
  if stored and (not added or goes_first(stored, added)) then
    return stored
  end
  return added
end

-- ── hints ──────────────────────────────────────────────────────────────────

local queue_hints, worker_hints = {}, {}

local function hint(queue)
  queue_hints[queue] = true
end

local function hint_worker(worker)
  worker_hints[worker] = true
end

-- ── the end ────────────────────────────────────────────────────────────────

local flushers = {} -- what other parts write, once, at the end

local function commit()
  for i = 1, #flushers do
    flushers[i]()
  end
  for key, changes in pairs(hashes) do
    local set, gone = {}, {}
    for field, value in pairs(changes) do
      if value == false then
        gone[#gone + 1] = field
      else
        set[#set + 1] = field
        set[#set + 1] = value
      end
    end
    in_chunks('HSET', P .. key, set)
    in_chunks('HDEL', P .. key, gone)
  end
  for _, set in pairs(sets) do
    if set.is_changed then
      local added, gone = {}, {}
      for member, score in pairs(set.changed) do
        if score == false then
          gone[#gone + 1] = member
        else
          added[#added + 1] = score
          added[#added + 1] = member
        end
      end
      in_chunks('ZREM', set.key, gone)
      in_chunks('ZADD', set.key, added)
    end
  end
  for key, list in pairs(removed) do
    in_chunks('ZREM', P .. key, list)
  end
  for key, list in pairs(appended) do
    in_chunks(list.command, P .. key, list)
  end
  for queue in pairs(queue_hints) do
    call('XADD', P .. '$hints' .. queue, 'MAXLEN', 1, '*', '', '')
  end
  for worker in pairs(worker_hints) do
    call('XADD', P .. '$worker_hints' .. worker, 'MAXLEN', 1, '*', '', '')
    call('PEXPIRE', P .. '$worker_hints' .. worker, HINT_LASTS) -- workers come and go, queues stay
  end
end
