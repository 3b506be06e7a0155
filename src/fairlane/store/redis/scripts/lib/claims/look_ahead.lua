-- uses: jobs/state_changes jobs/job_body limits/blocks
-- Which jobs may be claimed before a slot is free for them (S68): what model/scheduling/look_ahead.py decides. Only for
-- this part of a claim a job is read before it is chosen; what was read is kept for `start_attempts`.
-- Reads the hashes `heads` and `bodies`.

local heads_ahead, bodies_ahead = {}, {} -- by id, as stored; a job that is not in `heads` is a plain new one

-- Return whether a claim that ends before its handler starts costs the job that goes first in a tenant queue nothing.
local function may_be_ahead(tenant_queue, task, id)
  local rules = rules_of('task ' .. task)
  if
    tenant_queue.queue.rules.rate or limits_of(tenant_queue).rate or rules.rate or rules.gate or rules.budget
    or breakers.before(task, tenant_queue.tenant)[1]
  then
    return false -- a rate counts its start, or its task has a gate or a breaker that is not closed
  end
  local bytes, body, head, failures = hget('$heads', id), hget('$bodies', id), heads[id], 0
  heads_ahead[id], bodies_ahead[id] = bytes, body
  if not head and not is_plain_new_job(bytes) then
    head = read_head(bytes)
    heads[id] = head
  end
  if head then
    if head[IS_SUSPECT] == 1 or (head[IS_DEDUP_UNTIL_STARTED] == 1 and head[DEDUP_KEY] ~= '') then
      return false
    end
    failures = head[FAILURES]
  end
  local max_attempts, at_most_once = attempt_limits(body)
  return failures + 1 < max_attempts and not at_most_once
end

-- Return heads and bodies of chosen jobs, as stored. Those that are ahead come last, and were read before.
local function parts_of(ids)
  if not next(heads_ahead) then
    return hmget('$heads', ids), hmget('$bodies', ids)
  end
  local unread, count = {}, 0
  while ids[count + 1] and not heads_ahead[ids[count + 1]] do
    count = count + 1
    unread[count] = ids[count]
  end
  local bytes_of, bodies = hmget('$heads', unread), hmget('$bodies', unread)
  for i = count + 1, #ids do
    bytes_of[i], bodies[i] = heads_ahead[ids[i]], bodies_ahead[ids[i]]
  end
  return bytes_of, bodies
end
