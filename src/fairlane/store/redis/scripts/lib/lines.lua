-- Clocks, and the ready index: who has the lowest (S41). A queue has two lines, one of its turns with nothing running
-- and one of the other ready ones, so that headroom (S48) finds the former.
--
-- A clock is kept as 8 bytes, exact for ever; a Lua number is exact up to 2^53 alone. So a script counts from
-- the queue's floor as it found it: only what is further from it than 2^53 would be rounded.

local function clock_of(queue, upper, lower)
  return (upper - queue.upper) * WORD + (lower - queue.lower)
end

local function words_of(queue, clock)
  local upper, lower = queue.upper + floor(clock / WORD), queue.lower + clock % WORD
  if lower >= WORD then
    return upper + 1, lower - WORD
  end
  return upper, lower
end

-- In the index, and wherever parked turns and strands wait in line: clock, ready since, then the names.
local function by_turn(queue)
  return function(member)
    local upper, lower, since = struct.unpack('>I4I4I8', member)
    return {clock_of(queue, upper, lower), since, member}
  end
end

-- What is stored is read page by page. A turn that this script has moved counts by its own fields instead: it is in
-- the heap, with every place it has had, of which only the last holds.
local Line = {at = 1, start = 0, rank = 0, size = 8, is_all = false}
Line.__index = Line

local function new_line(queue, key)
  return setmetatable({queue = queue, name = key, heap = {}, page = {}}, Line)
end

local function line_of(queue, counts)
  return counts[RUNNING] > 0 and queue.busy or queue.idle
end

function Line:fetch()
  self.page = call('ZRANGE', P .. self.name, self.rank, self.rank + self.size - 1)
  self.is_all = #self.page < self.size
  self.at, self.start, self.rank, self.size = 1, self.rank, self.rank + self.size, math.min(self.size * 4, 128)
end

function Line:read()
  if not self.page[self.at] and not self.is_all then
    self:fetch()
  end
  local member = self.page[self.at]
  if member then
    local upper, lower, since = struct.unpack('>I4I4I8', member)
    self.entry = {clock_of(self.queue, upper, lower), since, member:sub(PLACE + 1)}
  end
  return self.entry
end

function Line:first_moved()
  local heap, queue = self.heap, self.queue
  local entry = heap[1]
  while entry do
    local turn = queue.turns[entry[3]]
    if not turn then
      return entry -- a peek's, of a script before
    end
    if turn.clock == entry[1] and turn.is_ready and turn.since == entry[2] and line_of(queue, turn.counts) == self then
      return entry
    end
    pop(heap)
    entry = heap[1]
  end
end

function Line:first()
  local stored, turns, carried = self.entry or self:read(), self.queue.turns, self.queue.carried
  while stored do
    local turn = turns[stored[3]]
    if not (turn and turn.is_moved or carried[stored[3]]) then
      break
    end
    self.at, self.entry = self.at + 1, nil
    stored = self:read()
  end
  local moved = self.heap[1] and self:first_moved()
  if stored and (not moved or goes_first(stored, moved)) then
    return stored
  end
  return moved or nil
end
