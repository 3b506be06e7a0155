-- uses: jobs/state_changes dead/letters
-- Take back jobs that have ended, each unless its id is known (S116).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: seven for each job: its id, head, body, attempts, result ('' for none), review ('' for none), and what
-- the dead letter is ('' if the job is not dead).
-- Reply: 1 or 0 for each job: whether it is new.
local done = {}
for i = 2, #ARGV, 7 do
  local id = ARGV[i]
  local is_new = not head_of(id)
  if is_new then
    local head = read_head(ARGV[i + 1])
    local tenant_queue = tenant_queue_of(head)
    heads[id] = head
    add_new('HSET', '$heads', id, ARGV[i + 1])
    add_new('HSET', '$bodies', id, ARGV[i + 2])
    if ARGV[i + 3] ~= '' then
      hset('$attempts', id, ARGV[i + 3])
    end
    if ARGV[i + 4] ~= '' then
      hset('$results', id, ARGV[i + 4])
      zadd('$results_kept', head[SETTLED_AT], id)
    end
    zadd('$all', head[ENQUEUED_AT], id)
    zadd('$by_tenant' .. head[TENANT], head[ENQUEUED_AT], id)
    if head[CORRELATION_ID] ~= '' then
      zadd('$by_correlation' .. head[CORRELATION_ID], head[ENQUEUED_AT], id)
    end
    zadd('$finished' .. head[STATE], head[SETTLED_AT], id)
    tenant_queue[head[STATE]] = tenant_queue[head[STATE]] + 1
    mark_changed(tenant_queue)
    if head[STATE] == DEAD then
      letters.put(id, ARGV[i + 6], head[SETTLED_AT])
      if ARGV[i + 5] ~= '' then
        hset('$reviews', id, ARGV[i + 5])
      end
    end
  end
  done[#done + 1] = is_new and 1 or 0
end
commit()
return done
