-- uses: jobs/state_changes limits/blocks
-- Explain what holds a ready job, in the order of the contract, and how many jobs of its tenant go first.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] its id; [3...] the tasks to count, or none for all (not possible for a wide tenant queue).
-- Reply: reason, subject and until ('' and 0 if nothing holds it), how many go first (-1: tasks must be named); empty
-- if the job is not ready.
local id = ARGV[2]
local head = head_of(id)
if not head or head[STATE] ~= READY then
  return {}
end
local tenant_queue, key = tenant_queue_of(head), sort_key(head)

-- Count the jobs of a strand behind its head that go first. Jobs with the same key are in the order of their ids.
local function count_behind(task, strand)
  local jobs, prefetched = PREFIX .. strand_key(tenant_queue, task), prefetched_before(key, id, strand)
  if task == head[TASK] then
    local rank = call('ZRANK', jobs, id)
    return rank and prefetched + rank or math.max(0, prefetched - 1) -- it is prefetched, or the head
  end
  local exact = string.format('%.0f', key)
  local low, high = call('ZCOUNT', jobs, '-inf', '(' .. exact), call('ZCOUNT', jobs, '-inf', exact)
  while low < high do
    local middle = floor((low + high) / 2)
    if bytes_before(call('ZRANGE', jobs, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return prefetched + low
end

local function count_first(task)
  local strand = tenant_queue.strands[task]
  if not strand or strand[READY_COUNT] == 0 or before_head(key, id, strand) then
    return 0
  end
  return (strand[HEAD_ID] ~= id and 1 or 0) + count_behind(task, strand)
end

local ahead = tenant_queue.wide and not ARGV[3] and -1 or 0
if ARGV[3] then
  for i = 3, #ARGV do
    ahead = ahead + count_first(ARGV[i])
  end
else
  for task in pairs(tenant_queue.strands) do
    ahead = ahead + count_first(task)
  end
end
local block = pause_of('queue ' .. head[QUEUE]) or pause_of('tenant ' .. head[TENANT])
  or pause_of('task ' .. head[TASK])
  or queue_block(tenant_queue.queue) or tenant_block(tenant_queue) or strand_block(head[TASK], head[TENANT]) or {'', '', 0}
return {block[REASON], block[SUBJECT], block[UNTIL], ahead}
