-- uses:
-- Hints that wake waiting workers: each queue (`hints`) and each worker (`worker_hints`) has a stream of one entry, on
-- which workers block (wake.py). `commit` writes them last.

local queues_to_hint, workers_to_hint = {}, {}

local function hint_queue(queue)
  queues_to_hint[queue] = true
end

local function hint_worker(worker)
  workers_to_hint[worker] = true
end
