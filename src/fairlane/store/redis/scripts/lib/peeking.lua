-- What a peek knows when a script ends before it does: all that a claim would have written. The next script lays it over
-- what is stored. Only the queue that is looked into is moved.

local function flat(heap)
  local values = {}
  for i, entry in ipairs(heap) do
    values[i * 3 - 2], values[i * 3 - 1], values[i * 3] = entry[1], entry[2], entry[3]
  end
  return values
end

local function is_last_place(line, entry)
  local queue = line.queue
  local turn = queue.turns[entry[3]]
  return not turn
    or turn.is_ready and turn.clock == entry[1] and turn.since == entry[2] and line_of(queue, turn.counts) == line
end

-- Give the heap of a line without places that turns have left; in its order, if there are none of these.
local function places_in(line)
  local heap, known, is_left = {}, {}, false
  for _, entry in ipairs(line.heap) do
    if is_last_place(line, entry) and not known[entry[3]] then
      known[entry[3]] = true
      heap[#heap + 1] = entry
    else
      is_left = true
    end
  end
  if not is_left then
    return heap
  end
  local clean = {}
  for _, entry in ipairs(heap) do
    push(clean, entry)
  end
  return clean
end

local function keep_line(line)
  return {line.start + line.at - 1, flat(places_in(line))}
end

local function keep_sets()
  for name, id in pairs(taken) do
    removed[name] = {id}
  end
  for key, set in pairs(sets) do
    local new, gone = {}, {}
    for member, score in pairs(set.changed) do
      if score == false then
        gone[#gone + 1] = member
      else
        new[#new + 1] = score
        new[#new + 1] = member
      end
    end
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
      local upper, lower = words_of(queue, turn.clock)
      turns[tenant] = write_turn(upper, lower, turn.since, turn.counts, turn.strands, turn.parked, turn.arrival)
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
    keep_line(queue.idle), keep_line(queue.busy), hashes, appended, removed,
  }
end

local function resume_line(line, kept)
  local values = kept[2]
  line.start, line.rank = kept[1], kept[1]
  for i = 1, #values, 3 do
    line.heap[#line.heap + 1] = {values[i], values[i + 1], values[i + 2]}
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
  local queue = queue_named(name)
  queue.upper, queue.lower, queue.floor, queue.delayed, queue.ready, queue.marks, queue.groups = unpack(kept[1])
  queue.carried = hashes['$turns' .. name]
  resume_line(queue.idle, kept[2])
  resume_line(queue.busy, kept[3])
end
