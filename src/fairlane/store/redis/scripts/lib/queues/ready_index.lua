-- uses:
-- Virtual times, and the ready index: which tenant queue has the lowest vt (S41). A queue has two sorted sets,
-- `not_running_index` for ready tenants with nothing running and `running_index` for the other ready ones, so that
-- headroom (S48) finds the former.
-- A vt is stored in 8 bytes and is always exact; a Lua number is exact up to 2^53. So a script counts from the floor
-- that it found in the queue: only a vt further away than 2^53 would be rounded.

local function vt_of(queue, upper, lower)
  return (upper - queue.upper) * VT_WORD + (lower - queue.lower)
end

local function vt_words(queue, vt)
  local upper, lower = queue.upper + floor(vt / VT_WORD), queue.lower + vt % VT_WORD
  if lower >= VT_WORD then
    return upper + 1, lower - VT_WORD
  end
  return upper, lower
end

-- Members of the index and of the sets of parked work begin with vt and ready since, then follow the names.
local function by_vt(queue)
  return function(member)
    local upper, lower, since = struct.unpack('>I4I4I8', member)
    return {vt_of(queue, upper, lower), since, member}
  end
end

-- The stored members are read page by page. A tenant queue that this script has moved counts by its own fields:
-- `moved` has every place it had, of which the last holds, in order. `next` is the first of them that may still hold.
-- Nearly always a tenant queue moves behind all others.
local ReadyIndex = {at = 1, start = 0, rank = 0, size = 8, is_exhausted = false, entry = false, next = 1}
ReadyIndex.__index = ReadyIndex

local function new_ready_index(queue, key)
  return setmetatable({queue = queue, name = key, moved = {}, page = {}}, ReadyIndex)
end

local function ready_index_of(queue, tenant_queue)
  return tenant_queue[RUNNING] > 0 and queue.running_index or queue.not_running_index
end

function ReadyIndex:insert(tenant_queue)
  local entry, moved = {tenant_queue.vt, tenant_queue.since, tenant_queue.tenant}, self.moved
  local low, high = self.next, #moved
  if high < low or not entry_before(entry, moved[high]) then
    moved[high + 1] = entry
    return
  end
  while low < high do
    local middle = floor((low + high) / 2)
    if entry_before(entry, moved[middle]) then
      high = middle
    else
      low = middle + 1
    end
  end
  if low == self.next and low > 1 then -- into the place of one that no longer holds
    self.next = low - 1
    moved[low - 1] = entry
  else
    table.insert(moved, low, entry)
  end
end

function ReadyIndex:fetch()
  self.page = call('ZRANGE', PREFIX .. self.name, self.rank, self.rank + self.size - 1)
  self.is_exhausted = #self.page < self.size
  self.at, self.start, self.rank = 1, self.rank, self.rank + self.size
  self.size = math.min(self.size * 4, MAX_JOBS_PER_SCRIPT)
end

function ReadyIndex:has_moved(tenant)
  local tenant_queue = self.queue.tenant_queues[tenant]
  return tenant_queue and tenant_queue.is_moved or self.queue.from_last_script[tenant]
end

-- Return the first stored entry that was not moved.
function ReadyIndex:first_stored()
  local entry = self.entry
  if entry and not self:has_moved(entry[MEMBER]) then
    return entry
  end
  while true do
    local member = self.page[self.at]
    if member then
      local tenant = member:sub(INDEX_PLACE_SIZE + 1)
      if not self:has_moved(tenant) then
        local upper, lower, since = struct.unpack('>I4I4I8', member)
        self.entry = {vt_of(self.queue, upper, lower), since, tenant}
        return self.entry
      end
      self.at = self.at + 1
    elseif self.is_exhausted then
      self.entry = false
      return nil
    else
      self:fetch()
    end
  end
end

function ReadyIndex:is_place_of(tenant_queue, entry)
  return tenant_queue.vt == entry[SCORE] and tenant_queue.is_ready and tenant_queue.since == entry[TIE_BREAK]
    and ready_index_of(self.queue, tenant_queue) == self
end

function ReadyIndex:first_moved()
  local entry, tenant_queues = self.moved[self.next], self.queue.tenant_queues
  while entry do
    local tenant_queue = tenant_queues[entry[MEMBER]]
    if not tenant_queue or self:is_place_of(tenant_queue, entry) then -- not loaded: of a peek's last script
      return entry
    end
    self.next = self.next + 1
    entry = self.moved[self.next]
  end
end

function ReadyIndex:first()
  local stored, moved = self:first_stored(), self.moved[self.next] and self:first_moved()
  if stored and (not moved or entry_before(stored, moved)) then
    return stored
  end
  return moved or nil
end
