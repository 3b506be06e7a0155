-- uses: registry
-- Register: add a worker and publish its tasks. ARGV: worker, its card, the longest silence between two heartbeats,
-- then name and card of each task.
local worker, tasks = ARGV[2], {}
for i = 5, #ARGV do
  tasks[i - 4] = ARGV[i]
end
put('$workers', worker, ARGV[3])
put('$workers_tasks', worker, pack(tasks))
put('$beats', worker, pack({'starting', NOW, NOW, 0, 0, 0}))
beat(tasks, tonumber(ARGV[4]))
commit()
