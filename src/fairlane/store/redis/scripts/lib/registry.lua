-- What every sign of life does: publish the worker's tasks, and tell an outage from a death (S38).

local function beat(tasks, silence)
  for i = 1, #tasks, 2 do
    put('$cards', tasks[i], tasks[i + 1])
    put('$cards_seen', tasks[i], NOW)
  end
  local before = tonumber(look('$meta', 'beat_at') or nil)
  if not before or NOW - before > silence then
    put('$meta', 'resumed_at', NOW)
  end
  put('$meta', 'beat_at', NOW)
end

local function remove_worker(worker)
  for _, key in ipairs({'$workers', '$workers_tasks', '$beats'}) do
    put(key, worker, false)
  end
end
