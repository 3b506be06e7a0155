-- uses: liveness
-- Register a worker and publish its tasks.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker; [3] its record; [4] the longest silence between two heartbeats; then key and record of each
-- task.
local worker, tasks = ARGV[2], {}
for i = 5, #ARGV do
  tasks[i - 4] = ARGV[i]
end
hset('$workers', worker, ARGV[3])
hset('$workers_tasks', worker, pack(tasks))
hset('$heartbeats', worker, pack({'starting', NOW, NOW, 0, 0, 0}))
record_heartbeat(tasks, tonumber(ARGV[4]))
commit()
