-- uses: rules records lines strands turns parking blocks homes
-- Explain: what holds a ready job, in the order of the contract. ARGV: its id, and the tasks of whose jobs to count those
-- that go first; none for all, of a turn that is not wide. Gives reason, subject and until ('' and 0 if nothing of this
-- holds it), how many go first, -1 if tasks must be named; nothing if the job is not ready.
local id = ARGV[2]
local head = head_of(id)
if not head or head[STATE] ~= READY then
  return {}
end
local turn, key = turn_of(head), sort_key(head)

-- Count the jobs of a strand after its head that go first. Those with the same key are in the order of their ids.
local function count_behind(task, strand)
  local jobs, heirs = P .. name_of(turn, task), heirs_before(key, id, strand)
  if task == head[TASK] then
    local rank = call('ZRANK', jobs, id)
    return rank and heirs + rank or math.max(0, heirs - 1) -- it is among them, or the head
  end
  local exact = string.format('%.0f', key)
  local low, high = call('ZCOUNT', jobs, '-inf', '(' .. exact), call('ZCOUNT', jobs, '-inf', exact)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_before(call('ZRANGE', jobs, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return heirs + low
end

local function count_first(task)
  local strand = turn.strands[task]
  if not strand or strand[2] == 0 or is_ahead(key, id, strand) then
    return 0
  end
  return (strand[4] ~= id and 1 or 0) + count_behind(task, strand)
end

local ahead = turn.wide and not ARGV[3] and -1 or 0
if ARGV[3] then
  for i = 3, #ARGV do
    ahead = ahead + count_first(ARGV[i])
  end
else
  for task in pairs(turn.strands) do
    ahead = ahead + count_first(task)
  end
end
local block = pause_of('queue ' .. head[QUEUE]) or pause_of('tenant ' .. head[TENANT]) or pause_of('task ' .. head[TASK])
  or queue_block(turn.queue) or turn_block(turn) or strand_block(head[TASK]) or {'', '', 0}
return {block[1], block[2], block[3], ahead}
