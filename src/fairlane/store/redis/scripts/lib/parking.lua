-- What is out of the ready index, why, and what brings it back (S42, S43, S54). A park is {reason, subject,
-- until (0: not by time), the clock and "ready since" at which it happened, generations}. What is parked stands
-- in up to three lines, all in the order of those two and the task:
--   woken                    what time wakes, by that time
--   p:<queue>\0<group>\0<n>      what one change of a policy may free: all turns ("t"), the strands of a task
--                                ("s<task>"), those that a gate's rate holds ("r<gate>")
--   g:<queue>\0<gate>            who waits for a place at a gate
-- A changed policy only closes its group and begins a new generation: claims and promote go on from there, a
-- bounded number each, so that no script grows with the number of those who wait.

local function names_in(member)
  local task, tenant = member:match('^(%Z*)%z(.*)$', 17)
  return tenant, task
end

local function group_line(queue, group, generation)
  return sorted('$groups' .. queue.name .. '\0' .. group .. '\0' .. generation, queue.in_turn, 128)
end

local function gate_line(queue, gate)
  return sorted('$gate_line' .. queue.name .. '\0' .. gate, queue.in_turn)
end

-- ── which gates have lines in which queues ─────────────────────────────────

local lines

local function line_lengths()
  if not lines then
    lines = {}
    local stored = call('HGETALL', P .. '$line_lengths')
    for i = 1, #stored, 2 do
      lines[stored[i]] = tonumber(stored[i + 1])
    end
    for name, length in pairs(hashes['$line_lengths'] or {}) do
      lines[name] = length or nil
    end
  end
  return lines
end

local function lengthen(queue, gate, change)
  local name = queue.name .. '\0' .. gate
  local length = (line_lengths()[name] or 0) + change
  lines[name] = length ~= 0 and length or nil
  put('$line_lengths', name, length ~= 0 and length)
end

local function gates_with_lines(queue)
  local found = {}
  for name in pairs(line_lengths()) do
    local other, gate = name:match('^(%Z*)%z(.*)$')
    if other == queue.name then
      found[#found + 1] = gate
    end
  end
  table.sort(found, is_before)
  return found
end

local function hint_at_gate(gate)
  for name in pairs(line_lengths()) do
    local queue, other = name:match('^(%Z*)%z(.*)$')
    if other == gate then
      hint(queue)
    end
  end
end

-- ── parking ────────────────────────────────────────────────────────────────

local function enter_line(turn, task, parked)
  local queue, place = turn.queue, place_of(turn, task, parked)
  local group, gate = task == '' and 't' or 's' .. task, gate_of(parked)
  parked[6], parked[7] = queue.groups[group] or 0, -1
  group_line(queue, group, parked[6]):add(0, place)
  if parked[3] > 0 then
    queue.woken:add(parked[3], place)
  end
  if parked[1] == 'gate' then
    gate_line(queue, gate):add(0, place)
    if turn.wide then
      own_line(turn, gate):add(0, place)
    end
    lengthen(queue, gate, 1)
  elseif gate then
    parked[7] = queue.groups['r' .. gate] or 0
    group_line(queue, 'r' .. gate, parked[7]):add(0, place)
  end
end

leave_line = function(turn, task, parked)
  local queue, place = turn.queue, place_of(turn, task, parked)
  local group, gate = task == '' and 't' or 's' .. task, gate_of(parked)
  if parked[6] >= 0 then
    group_line(queue, group, parked[6]):remove(place)
  end
  if parked[3] > 0 then
    queue.woken:remove(place)
  end
  if parked[1] == 'gate' then
    gate_line(queue, gate):remove(place)
    if turn.wide then
      own_line(turn, gate):remove(place)
    end
    lengthen(queue, gate, -1)
  elseif parked[7] >= 0 then
    group_line(queue, 'r' .. gate, parked[7]):remove(place)
  end
end

-- Take a turn ('' for its task) or a strand out of the index; `block` is {reason, subject, until}.
local function park(turn, task, block)
  local parked = {block[1], block[2], block[3], struct.pack('>I4I4', words_of(turn.queue, turn.clock)), turn.since}
  enter_line(turn, task, parked)
  if task == '' then
    turn.parked = parked
  else
    local strand = turn.strands[task]
    shut(turn, task, strand)
    strand[5] = parked
  end
  refresh(turn)
end

local function unpark(turn, task)
  if task == '' then
    leave_line(turn, task, turn.parked)
    turn.parked = false
  else
    local strand = turn.strands[task]
    leave_line(turn, task, strand[5])
    strand[5] = false
    open(turn, task, strand)
  end
  refresh(turn)
end

local function parked_at(turn, task)
  if task == '' then
    return turn.parked
  end
  return turn.strands[task][5]
end

-- Let time wake what is parked, from an instant on, unless it does so before.
local function wake_from(turn, task, instant)
  local parked = parked_at(turn, task)
  if parked[3] == 0 or parked[3] > instant then
    parked[3] = instant
    turn.queue.woken:add(instant, place_of(turn, task, parked))
    touch(turn)
  end
end

-- ── waking ─────────────────────────────────────────────────────────────────

local function know_line(queue, line)
  local tenants = {}
  for i = line.at, #line.page, 2 do
    tenants[#tenants + 1] = names_in(line.page[i])
  end
  know_turns(queue, tenants)
end

-- Let time wake whom changed policies may have held, at most so many; say how many, and whether that was all.
local function heed_marks(queue, most)
  local count = 0
  while queue.marks[1] do
    local group, generation, instant = unpack(queue.marks[1])
    local line = group_line(queue, group, generation)
    local entry = line:first()
    while entry do
      if count == most then
        return count, false
      end
      count = count + 1
      local tenant, task = names_in(entry[3])
      if not queue.turns[tenant] then
        know_line(queue, line)
      end
      local turn = turn_named(queue, tenant)
      parked_at(turn, task)[group:sub(1, 1) == 'r' and 7 or 6] = -1
      touch(turn)
      line:remove(entry[3])
      wake_from(turn, task, instant)
      entry = line:first()
    end
    table.remove(queue.marks, 1)
  end
  return count, true
end

local function begin_waking(only)
  return {left = WAKE_MOST, marks = WAKE_MOST + 1, due = 0, is_partial = false, is_awake = false, only = only, filled = {}}
end

-- Give the first turn and task of those who wait at a gate. A peek for one tenant does not look at all the others.
local function first_at(queue, gate, only)
  if not only then
    local entry = gate_line(queue, gate):first()
    if not entry then
      return nil
    end
    local tenant, task = names_in(entry[3])
    return turn_named(queue, tenant), task
  end
  local turn, first, chosen = turn_named(queue, only), nil, nil
  if turn.wide then
    local entry = own_line(turn, gate):first()
    if not entry then
      return nil
    end
    local _, task = names_in(entry[3])
    return turn, task
  end
  for task, strand in pairs(turn.strands) do
    if is_at_gate(strand) and gate_of(strand[5]) == gate then
      local place = place_of(turn, task, strand[5])
      if not first or is_before(place, first) then
        first, chosen = place, task
      end
    end
  end
  return first and turn, chosen
end

-- Wake of the strands at each gate as many as it has room for, at most so many in this script; say whether any of their
-- tenants is ready now, and whether it must go on in the next script: `filled` has the places that are given away.
local function fill_gates(queue, waking, filled, most)
  local is_any_ready, is_cut, last = false, false, math.max(0, waking.left - most)
  for _, gate in ipairs(gates_with_lines(queue)) do
    local room = room_at(gate)
    while not room or room > (filled[gate] or 0) do
      local turn, task = first_at(queue, gate, waking.only)
      if not turn then
        break
      end
      if waking.left == last then
        waking.is_partial, is_cut = true, last > 0
        break
      end
      waking.left = waking.left - 1
      unpark(turn, task)
      if turn.is_ready then -- else its tenant cannot take the place
        is_any_ready, filled[gate] = true, (filled[gate] or 0) + 1
      end
    end
  end
  return is_any_ready, is_cut
end

-- Wake what time or a changed policy frees, then what gates have room for; no more than so many in this script, and than
-- a claim may. False: the next script goes on with it.
local function wake(queue, waking, most)
  local heeded, is_all = heed_marks(queue, math.min(most, waking.marks))
  waking.marks, most = waking.marks - heeded, most - heeded
  if not is_all and waking.marks > 0 then
    return false
  end
  local entry = queue.woken:first()
  while entry and entry[1] <= NOW and waking.left > 0 do
    if most == 0 then
      return false
    end
    waking.left, most = waking.left - 1, most - 1
    local tenant, task = names_in(entry[3])
    if not queue.turns[tenant] then
      know_line(queue, queue.woken)
    end
    unpark(turn_named(queue, tenant), task)
    entry = queue.woken:first()
  end
  waking.is_partial = not is_all or (entry ~= nil and entry[1] <= NOW)
  local _, is_cut = fill_gates(queue, waking, waking.filled, most)
  return not is_cut
end
