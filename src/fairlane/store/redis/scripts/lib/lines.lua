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

-- What is stored is read page by page. A turn that this script has moved counts by its own fields instead: it is among
-- those moved, with every place it has had, of which only the last holds. They are in order; nearly always a turn moves
-- behind all others. `next` is the first that may still hold.
local Line = {at = 1, start = 0, rank = 0, size = 8, is_all = false, entry = false, next = 1}
Line.__index = Line

local function new_line(queue, key)
  return setmetatable({queue = queue, name = key, moved = {}, page = {}}, Line)
end

local function line_of(queue, turn)
  return turn[RUNNING] > 0 and queue.busy or queue.idle
end

function Line:sort_in(turn)
  local entry, moved = {turn.clock, turn.since, turn.tenant}, self.moved
  local low, high = self.next, #moved
  if high < low or not goes_first(entry, moved[high]) then
    moved[high + 1] = entry
    return
  end
  while low < high do
    local middle = floor((low + high) / 2)
    if goes_first(entry, moved[middle]) then
      high = middle
    else
      low = middle + 1
    end
  end
  if low == self.next and low > 1 then -- into the place of one that has left
    self.next = low - 1
    moved[low - 1] = entry
  else
    table.insert(moved, low, entry)
  end
end

function Line:fetch()
  self.page = call('ZRANGE', P .. self.name, self.rank, self.rank + self.size - 1)
  self.is_all = #self.page < self.size
  self.at, self.start, self.rank, self.size = 1, self.rank, self.rank + self.size, math.min(self.size * 4, CLAIM_MOST)
end

function Line:has_moved(tenant)
  local turn = self.queue.turns[tenant]
  return turn and turn.is_moved or self.queue.carried[tenant]
end

-- Give the first that is stored and was not moved.
function Line:first_stored()
  local entry = self.entry
  if entry and not self:has_moved(entry[3]) then
    return entry
  end
  while true do
    local member = self.page[self.at]
    if member then
      local tenant = member:sub(PLACE + 1)
      if not self:has_moved(tenant) then
        local upper, lower, since = struct.unpack('>I4I4I8', member)
        self.entry = {clock_of(self.queue, upper, lower), since, tenant}
        return self.entry
      end
      self.at = self.at + 1
    elseif self.is_all then
      self.entry = false
      return nil
    else
      self:fetch()
    end
  end
end

function Line:is_place_of(turn, entry)
  return turn.clock == entry[1] and turn.is_ready and turn.since == entry[2] and line_of(self.queue, turn) == self
end

function Line:first_moved()
  local entry, turns = self.moved[self.next], self.queue.turns
  while entry do
    local turn = turns[entry[3]]
    if not turn or self:is_place_of(turn, entry) then -- without a turn it is a peek's, of a script before
      return entry
    end
    self.next = self.next + 1
    entry = self.moved[self.next]
  end
end

function Line:first()
  local stored, moved = self:first_stored(), self.moved[self.next] and self:first_moved()
  if stored and (not moved or goes_first(stored, moved)) then
    return stored
  end
  return moved or nil
end
