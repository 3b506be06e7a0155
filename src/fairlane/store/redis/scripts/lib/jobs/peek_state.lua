-- uses: claims/claim
-- What a peek knows when a script ends before it does: all that a claim would have written. The next script
-- takes it into its buffer. Only the queue that is looked at is carried. Writes no key.

-- Return how far an index was read, and the moved places that still hold.
local function save_index(index)
  local values, count, tenant_queues = {}, 0, index.queue.tenant_queues
  for i = index.next, #index.moved do
    local entry = index.moved[i]
    local tenant_queue = tenant_queues[entry[MEMBER]]
    if not tenant_queue or index:is_place_of(tenant_queue, entry) then
      values[count + 1], values[count + 2], values[count + 3] = entry[SCORE], entry[TIE_BREAK], entry[MEMBER]
      count = count + 3
    end
  end
  return {index.start + index.at - 1, values}
end

-- Return what was added to a set and what was removed. First what lies in its heap, in that order: then the next
-- script has next to nothing to sort.
local function changes_of(set)
  local new, gone, count, changed, in_heap = {}, {}, 0, set.changed, {}
  for _, entry in ipairs(set.heap or EMPTY) do
    local member, score = entry[MEMBER], entry[STORED_SCORE]
    if changed[member] == score and not in_heap[member] then
      new[count + 1], new[count + 2], in_heap[member] = score, member, true
      count = count + 2
    end
  end
  for member, score in pairs(changed) do
    if score == false then
      gone[#gone + 1] = member
    elseif not in_heap[member] then
      new[count + 1], new[count + 2] = score, member
      count = count + 2
    end
  end
  return new, gone
end

local function save_sets()
  for key, set in pairs(sorted_sets) do
    local new, gone = changes_of(set)
    new_entries[key], removed_members[key] = new[1] and new, gone[1] and gone
  end
end

local function save_tenant_queues(queue)
  local tenant_queues = queue.from_last_script == EMPTY and {} or queue.from_last_script
  for tenant, tenant_queue in pairs(queue.tenant_queues) do
    if tenant_queue.is_changed then
      if not tenant_queue.is_moved then
        mark_moved(tenant_queue) -- the next script takes its place from here
      end
      tenant_queues[tenant] = pack_record(queue, tenant_queue)
    end
  end
  return tenant_queues
end

-- Return all that the next script must know of a queue.
local function save_peek(queue)
  budgets.write()
  changed_fields['$tenant_queues' .. queue.name] = save_tenant_queues(queue)
  sort_moved(queue)
  save_sets()
  local new = new_entries['$heads'] or {}
  for i = 1, #new, 2 do
    hset('$heads', new[i], new[i + 1])
  end
  new_entries['$heads'] = nil
  for _, list in pairs(new_entries) do
    list.command = nil
  end
  return {
    queue = {
      queue.upper, queue.lower, queue.floor, queue.delayed, queue.ready, queue.changed_groups, queue.generations,
    },
    not_running = save_index(queue.not_running_index), running = save_index(queue.running_index),
    changed_fields = changed_fields, new_entries = new_entries, removed_members = removed_members,
    taken_from_sets = taken_from_sets,
  }
end

local function load_index(index, saved)
  local rank, values = unpack(saved)
  local moved = index.moved
  index.start, index.rank = rank, rank
  for i = 1, #values, 3 do
    moved[(i + 2) / 3] = {values[i], values[i + 1], values[i + 2]}
  end
end

-- Go on from what `save_peek` returned.
local function load_peek(name, saved)
  for key, changes in pairs(saved.changed_fields) do
    changed_fields[key] = changes
  end
  for key, list in pairs(saved.new_entries) do
    list.command = 'ZADD'
    new_entries[key] = list
  end
  for key, list in pairs(saved.removed_members) do
    removed_members[key] = list
  end
  for name, ids in pairs(saved.taken_from_sets) do
    taken_from_sets[name] = ids
  end
  local queue = load_queue(name)
  queue.upper, queue.lower, queue.floor, queue.delayed, queue.ready, queue.changed_groups, queue.generations =
    unpack(saved.queue)
  queue.from_last_script = changed_fields['$tenant_queues' .. name]
  load_index(queue.not_running_index, saved.not_running)
  load_index(queue.running_index, saved.running)
end
