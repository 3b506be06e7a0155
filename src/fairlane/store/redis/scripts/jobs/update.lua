-- uses: jobs/state_changes
-- Write what was decided in Python about jobs, each unless it has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] queues and workers to send hints to, msgpack; then six for each job: its id, its head as it was read, its new head
-- ('' to delete the job), and '=' with the new body, attempts and result ('' to leave them).
-- Reply: 1 or 0 for each job: whether it was written.
local queues_to_tell, workers_to_tell = unpack(unpack_one(ARGV[2]))
local done = {}

local function rewrite(id, before, after, body, attempts, result)
  if before[CORRELATION_ID] ~= after[CORRELATION_ID] then
    sorted_set('$by_correlation' .. before[CORRELATION_ID]):remove(id)
  end
  change_job(id, before, after)
  if body ~= '' then
    hset('$bodies', id, body:sub(2))
  end
  if attempts ~= '' then
    hset('$attempts', id, attempts:sub(2))
  end
  if result ~= '' then
    hset('$results', id, result:sub(2))
    sorted_set('$results_kept'):remove(id)
  end
end

for i = 3, #ARGV, 6 do
  local id = ARGV[i]
  local is_same = heads[id] == nil and hget('$heads', id) == ARGV[i + 1]
  if is_same then
    local before = read_head(ARGV[i + 1])
    if ARGV[i + 2] == '' then
      delete_job(id, before)
    else
      rewrite(id, before, read_head(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
    end
  end
  done[#done + 1] = is_same and 1 or 0
end
for _, queue in ipairs(queues_to_tell) do
  hint_queue(queue)
end
for _, worker in ipairs(workers_to_tell) do
  hint_worker(worker)
end
commit()
return done
