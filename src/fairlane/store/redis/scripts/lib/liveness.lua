-- uses:
-- What each heartbeat of a worker does: publish its tasks, and tell an outage of the store from the death of workers
-- (S38). Hashes `task_records`, `tasks_seen`, `meta`, `workers`, `workers_tasks` and `heartbeats`.

local function record_heartbeat(tasks, silence)
  for i = 1, #tasks, 2 do
    hset('$task_records', tasks[i], tasks[i + 1])
    hset('$tasks_seen', tasks[i], NOW)
  end
  local before = tonumber(hget('$meta', 'beat_at') or nil)
  if not before or NOW - before > silence then
    hset('$meta', 'resumed_at', NOW)
  end
  hset('$meta', 'beat_at', NOW)
end

local function remove_worker(worker)
  for _, key in ipairs({'$workers', '$workers_tasks', '$heartbeats'}) do
    hset(key, worker, false)
  end
end
