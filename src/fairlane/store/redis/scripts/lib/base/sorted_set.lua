-- uses:
-- Sorted sets as this script has changed them: reads see stored and buffered entries. An entry is {SCORE, TIE_BREAK,
-- MEMBER, STORED_SCORE}, ordered by the first three. A set is read page by page from its start; what this script has
-- added waits in a heap. `first` compares the two.

local function entry_before(a, b)
  if a[SCORE] ~= b[SCORE] then
    return a[SCORE] < b[SCORE]
  end
  if a[TIE_BREAK] ~= b[TIE_BREAK] then
    return a[TIE_BREAK] < b[TIE_BREAK]
  end
  return bytes_before(a[MEMBER], b[MEMBER])
end

-- ── a binary heap of entries ─────────────────────────────────────────────────

local function heap_push(heap, entry)
  local i = #heap + 1
  while i > 1 do
    local above = floor(i / 2)
    if not entry_before(entry, heap[above]) then
      break
    end
    heap[i] = heap[above]
    i = above
  end
  heap[i] = entry
end

local function heap_pop(heap)
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
    if below < count and entry_before(heap[below + 1], heap[below]) then
      below = below + 1
    end
    if not entry_before(heap[below], last) then
      break
    end
    heap[i] = heap[below]
    i = below
  end
  heap[i] = last
end

-- ── sorted sets ──────────────────────────────────────────────────────────────

local sorted_sets = {}
local SortedSet = {}
SortedSet.__index = SortedSet

local function by_score(member, score)
  return {tonumber(score), 0, member}
end

-- Return the set of a key. `read` makes an entry of a stored member and its score, and so decides the order within
-- one score. `size` is the size of the first page.
local function sorted_set(key, read, size)
  local set = sorted_sets[key]
  if not set then
    set = setmetatable({ -- in one go: a table that grows is allocated anew
      key = PREFIX .. key, read = read or by_score, size = size or 2, changed = {}, is_changed = false, heap = false,
      unsorted = false, page = EMPTY, at = 1, rank = 0, is_exhausted = false, entry = false,
    }, SortedSet)
    sorted_sets[key] = set
    for _, member in ipairs(removed_members[key] or EMPTY) do
      set:remove(member)
    end
    removed_members[key] = nil
    local new = new_entries[key] or EMPTY
    set.heap, set.unsorted = new[1] and {} or false, new[1] and {} or false -- those of a peek lie in heap order
    for i = 1, #new, 2 do
      set:add(new[i], new[i + 1])
    end
    new_entries[key] = nil
  end
  return set
end

-- Add to a set from which this script reads nothing: a list of new entries is enough.
local function zadd(key, score, member)
  if sorted_sets[key] then
    sorted_sets[key]:add(score, member)
  else
    add_new('ZADD', key, score, member)
  end
end

-- Remove from such a set. Removals are written before additions: a member that is removed and added stays.
local function zrem(key, member)
  if sorted_sets[key] then
    sorted_sets[key]:remove(member)
    return
  end
  local list = removed_members[key]
  if not list then
    removed_members[key] = {member}
    return
  end
  list[#list + 1] = member
end

function SortedSet:add(score, member)
  self.changed[member] = score
  self.is_changed = true
  if self.heap then
    self.unsorted[#self.unsorted + 1] = member
  else
    self.unsorted = true
  end
end

function SortedSet:remove(member)
  self.changed[member] = false
  self.is_changed = true
end

function SortedSet:insert(member, score)
  if score then
    local entry = self.read(member, score)
    entry[STORED_SCORE] = score
    heap_push(self.heap, entry)
  end
end

-- Sort in what was added. Only a set that is asked for its first entry pays for this.
function SortedSet:sort_new()
  if not self.heap then
    self.heap = {}
    for member, score in pairs(self.changed) do
      self:insert(member, score)
    end
  else
    for _, member in ipairs(self.unsorted) do
      self:insert(member, self.changed[member])
    end
  end
  self.unsorted = {}
end

function SortedSet:fetch()
  local stored = call('ZRANGE', self.key, self.rank, self.rank + self.size - 1, 'WITHSCORES')
  self.is_exhausted = #stored < self.size * 2
  self.rank = self.rank + self.size
  self.size = math.min(self.size * 4, 128)
  self.page, self.at = stored, 1
end

function SortedSet:first_stored()
  local changed = self.changed
  while true do
    local member = self.page[self.at]
    if member == nil then
      if self.is_exhausted then
        return nil
      end
      self:fetch()
      self.entry = false
    elseif changed[member] ~= nil then
      self.at, self.entry = self.at + 2, false -- a changed member is in the heap, or gone
    else
      break
    end
  end
  if not self.entry then
    self.entry = self.read(self.page[self.at], self.page[self.at + 1])
  end
  return self.entry
end

function SortedSet:first_added()
  if self.unsorted == true or (self.unsorted and self.unsorted[1]) then
    self:sort_new()
  end
  local heap, changed = self.heap, self.changed
  while heap and heap[1] and changed[heap[1][MEMBER]] ~= heap[1][STORED_SCORE] do
    heap_pop(heap)
  end
  return heap and heap[1] or nil
end

-- Return the first entry with all changes so far, or nil.
function SortedSet:first()
  local stored, added = self:first_stored(), self:first_added()
  if stored and (not added or entry_before(stored, added)) then
    return stored
  end
  return added
end
