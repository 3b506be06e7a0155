-- uses: jobs/state_changes dead/letters claims/spending archive
-- Write what was decided in Python about jobs, each unless it has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] queues and workers to send hints to, msgpack; then eleven for each job: its id, its head as it was read, its new
-- head ('' to delete the job), '=' with the new body, attempts, result and review ('' to leave them), the review as it was
-- read, what the dead letter has become ('' if the job is not dead), the entries of the journals, packed, and what the archive
-- gets of a job that is deleted ('' for nothing).
-- Reply: 1 or 0 for each job: whether it was written.
local queues_to_tell, workers_to_tell = unpack(unpack_one(ARGV[2]))
local done = {}

local function is_unchanged(id, head, review)
  return heads[id] == nil and hget('$heads', id) == head
    and (read_head(head)[STATE] ~= DEAD or (hget('$reviews', id) or '') == review)
end

local function put_letter(id, before, after, review, change)
  local letter = letters.put(id, change, after[SETTLED_AT])
  if review ~= '' then
    hset('$reviews', id, review ~= '=' and review:sub(2))
  end
  if before[STATE] ~= DEAD then
    deaths.count(id, letter, after[BECAUSE])
  end
end

local function rewrite(id, before, after, body, attempts, result)
  if before[CORRELATION_ID] ~= after[CORRELATION_ID] then
    sorted_set('$by_correlation' .. before[CORRELATION_ID]):remove(id)
  end
  change_job(id, before, after)
  if before[STATE] == RUNNING and after[STATE] ~= RUNNING then -- workers end their claims by claims/settle.lua
    budgets.report(id, before[FENCE], 'ended', 0, '')
  end
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

for i = 3, #ARGV, 11 do
  local id = ARGV[i]
  local is_same = is_unchanged(id, ARGV[i + 1], ARGV[i + 7])
  if is_same then
    local before = read_head(ARGV[i + 1])
    if ARGV[i + 2] == '' then
      if before[STATE] == DEAD then
        letters.remove(id)
      end
      delete_job(id, before)
      if ARGV[i + 10] ~= '' then
        archive.add(id, before[TENANT], ARGV[i + 10])
      end
    else
      local after = read_head(ARGV[i + 2])
      rewrite(id, before, after, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
      if after[STATE] == DEAD then
        put_letter(id, before, after, ARGV[i + 6], ARGV[i + 8])
      end
    end
    journal.append_all(ARGV[i + 9])
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
