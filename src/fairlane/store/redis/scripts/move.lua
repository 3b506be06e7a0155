-- uses: rules records lines strands turns parking homes
-- Move: write what was decided about jobs, each unless it has changed since it was read. ARGV: queues and workers
-- to tell, then for each job its id, its head as it was read, its new head ('' to drop it), and '=' with a new
-- body, attempts and result, or '' to leave them. Says of each whether it was done.
local tell, done = unpack_one(ARGV[2]), {}

local function rewrite(id, before, after, body, attempts, result)
  if before[CORRELATION_ID] ~= after[CORRELATION_ID] then
    sorted('$by_correlation' .. before[CORRELATION_ID]):remove(id)
  end
  move(id, before, after)
  if body ~= '' then
    put('$bodies', id, body:sub(2))
  end
  if attempts ~= '' then
    put('$attempts', id, attempts:sub(2))
  end
  if result ~= '' then
    put('$results', id, result:sub(2))
    sorted('$results_kept'):remove(id)
  end
end

for i = 3, #ARGV, 6 do
  local id = ARGV[i]
  local is_same = heads[id] == nil and look('$heads', id) == ARGV[i + 1]
  if is_same then
    local before = read_head(ARGV[i + 1])
    if ARGV[i + 2] == '' then
      drop(id, before)
    else
      rewrite(id, before, read_head(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
    end
  end
  done[#done + 1] = is_same and 1 or 0
end
for _, queue in ipairs(tell[1]) do
  hint(queue)
end
for _, worker in ipairs(tell[2]) do
  hint_worker(worker)
end
commit()
return done
