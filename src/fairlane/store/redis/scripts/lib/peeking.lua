-- What a peek knows when a script ends before it does: all that a claim would have written. The next script lays it over
-- what is stored. Only the queue that is looked into is moved.

-- Give how far a line was read, and its places without those that turns have left.
local function keep_line(line)
  local values, count, turns = {}, 0, line.queue.turns
  for i = line.next, #line.moved do
    local entry = line.moved[i]
    local turn = turns[entry[3]]
    if not turn or line:is_place_of(turn, entry) then
      values[count + 1], values[count + 2], values[count + 3] = entry[1], entry[2], entry[3]
      count = count + 3
    end
  end
  return {line.start + line.at - 1, values}
end

-- Give what a set has lost and got: first what lies in its heap, as it lies there, so that the next script has next to
-- nothing to sort.
local function changes_of(set)
  local new, gone, count, changed, in_heap = {}, {}, 0, set.changed, {}
  for _, entry in ipairs(set.heap or NOTHING) do
    local member, score = entry[3], entry[4]
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

local function keep_sets()
  for key, set in pairs(sets) do
    local new, gone = changes_of(set)
    appended[key], removed[key] = new[1] and new, gone[1] and gone
  end
end

local function keep_turns(queue)
  local turns = queue.carried == NOTHING and {} or queue.carried
  for tenant, turn in pairs(queue.turns) do
    if turn.is_changed then
      if not turn.is_moved then
        list(turn) -- the next script takes its place from here
      end
      turns[tenant] = record_of(queue, turn)
    end
  end
  return turns
end

-- Give all that the next script must know of a queue.
local function suspend(queue)
  hashes['$turns' .. queue.name] = keep_turns(queue)
  sort_in_moved(queue)
  keep_sets()
  local new = appended['$heads'] or {}
  for i = 1, #new, 2 do
    put('$heads', new[i], new[i + 1])
  end
  appended['$heads'] = nil
  for _, list in pairs(appended) do
    list.command = nil
  end
  return {
    {queue.upper, queue.lower, queue.floor, queue.delayed, queue.ready, queue.marks, queue.groups},
    keep_line(queue.idle), keep_line(queue.busy), hashes, appended, removed, taken,
  }
end

local function resume_line(line, kept)
  local moved, values = line.moved, kept[2]
  line.start, line.rank = kept[1], kept[1]
  for i = 1, #values, 3 do
    moved[(i + 2) / 3] = {values[i], values[i + 1], values[i + 2]}
  end
end

local function resume(name, kept)
  for key, changes in pairs(kept[4]) do
    hashes[key] = changes
  end
  for key, list in pairs(kept[5]) do
    list.command = 'ZADD'
    appended[key] = list
  end
  for key, list in pairs(kept[6]) do
    removed[key] = list
  end
  for name, ids in pairs(kept[7]) do
    taken[name] = ids
  end
  local queue = queue_named(name)
  queue.upper, queue.lower, queue.floor, queue.delayed, queue.ready, queue.marks, queue.groups = unpack(kept[1])
  queue.carried = hashes['$turns' .. name]
  resume_line(queue.idle, kept[2])
  resume_line(queue.busy, kept[3])
end
