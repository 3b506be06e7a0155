-- uses: claims/claim claims/spending dead/deaths
-- Settle attempts, and claim the next jobs in the same script (S35-S37).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker; [3] the tenant of the scope or ''; [4] the settlements, packed (SETTLE_FORMAT); [5] the ids,
-- 16 bytes each; [6] a claim request or ''; [7] the name of its continuation; [8], [9] the number of this page and
-- how many there are; [10] how many ended attempts a job keeps; then, for each settlement that has them, the packed
-- failure, the packed log, the result and the metadata.
-- Each settlement has up to three variants, worked out in Python by `reconcile`: the plain one, one if cancellation
-- was requested, one if the job would come back after it expires. Which of them holds is decided here. An attempt that
-- comes back unstarted (S68) leaves no record.
-- Reply: the new state of each job (0: the claim was lost), and the reply of the claim.
local worker, scope = ARGV[2], ARGV[3]
local ids = split_ids(ARGV[5])

-- What this file defines is in one table: Lua allows 200 local names, and a script that claims has nearly as many.
local page = {}

-- Load the tenant queues of all these jobs at once.
function page.load_tenant_queues(ids)
  local tenants_of = {}
  for _, id in ipairs(ids) do
    local head = heads[id]
    if head then
      local tenants = tenants_of[head[QUEUE]] or {}
      tenants_of[head[QUEUE]] = tenants
      tenants[#tenants + 1] = head[TENANT]
    end
  end
  for name, tenants in pairs(tenants_of) do
    load_tenant_queues(load_queue(name), tenants)
  end
end

function page.is_current(head, fence)
  return head and head[STATE] == RUNNING and head[FENCE] == fence and head[WORKER] == worker
    and (scope == '' or scope == head[TENANT])
end

-- The settlements of this page, read one after the other.
do
  local settlements, at, part = ARGV[4], 1, 11
  local last, last_bytes, last_size = false, false, 0

  -- Return the next settlement. Most of a page differ from the one before only in the fence, which comes first.
  local function next_plain()
    if settlements:sub(at + 8, at + last_size - 1) == last_bytes then
      last[SETTLE_FENCE] = struct.unpack('>i8', settlements, at)
      at = at + last_size
      return last
    end
    local plain = {struct.unpack(SETTLE_FORMAT, settlements, at)}
    last, last_size = plain, plain[SETTLE_NEXT] - at
    last_bytes, at = settlements:sub(at + 8, at + last_size - 1), plain[SETTLE_NEXT]
    return plain
  end

  -- Return the next settlement, and the variant of it that holds.
  function page.next_variant(head)
    local plain = next_plain()
    local variant = plain
    if plain[SETTLE_HAS_IF_CANCELLED] == 1 then
      local if_cancelled = {struct.unpack(SETTLE_FORMAT, settlements, at)}
      at = if_cancelled[SETTLE_NEXT]
      if head and head[IS_CANCEL_ASKED] == 1 then
        if_cancelled[SETTLE_BECAUSE] = head[BECAUSE]
        variant = if_cancelled
      end
    end
    if plain[SETTLE_HAS_IF_EXPIRED] == 1 then
      local if_expired = {struct.unpack(SETTLE_FORMAT, settlements, at)}
      at = if_expired[SETTLE_NEXT]
      if variant == plain and head and head[EXPIRES_AT] > 0 and NOW + plain[SETTLE_DELAY] >= head[EXPIRES_AT] then
        variant = if_expired
      end
    end
    return plain, variant
  end

  local function next_argument(is_given, otherwise)
    if is_given == 0 then
      return otherwise
    end
    part = part + 1
    return ARGV[part - 1]
  end

  function page.next_arguments(plain)
    local failure, log = next_argument(plain[SETTLE_HAS_FAILURE], NIL), next_argument(plain[SETTLE_HAS_LOG], NIL)
    local result = next_argument(plain[SETTLE_HAS_RESULT], false)
    return failure, log, result, next_argument(plain[SETTLE_HAS_METADATA], false)
  end
end

-- Learn how long a task takes, for queues that charge by time.
function page.update_estimate(head, outcome)
  if outcome == 'succeeded' or outcome == 'failed' then
    local name = head[QUEUE] .. '\0' .. head[TASK]
    local estimate = tonumber(hget('$estimates', name) or FIRST_ESTIMATE)
    hset('$estimates', name, estimate + floor((NOW - head[STARTED_AT] - estimate) / 10))
  end
end

function page.store_result(id, head, result)
  head[HAS_RESULT] = 1
  hset('$results', id, result)
  if result ~= '' then
    zadd('$results_kept', NOW, id)
  end
end

-- Do what `change_job` does, in place: all that the end of a running job changes is known.
function page.settle(id, head, variant, failure, log, result)
  local tenant_queue, state, gate = tenant_queue_of(head), variant[SETTLE_STATE], head[GATE]
  if variant[SETTLE_IS_UNSTARTED] == 1 then
    head[ATTEMPT] = head[ATTEMPT] - 1
    refund(tenant_queue, head)
  else
    append_attempt(id, head, variant[SETTLE_OUTCOME], failure, log, tonumber(ARGV[10]))
    if head[CHARGED] >= 0 then
      page.update_estimate(head, variant[SETTLE_OUTCOME])
      charge_time(tenant_queue, head, true)
    end
  end
  if head[IS_CANCEL_ASKED] == 1 then
    zrem('$cancel_asked', id)
  end
  leave_state(id, head, tenant_queue)
  head[STATE], head[BECAUSE] = state, variant[SETTLE_BECAUSE]
  head[FAILURES], head[CRASHES] = variant[SETTLE_FAILURES], variant[SETTLE_CRASHES]
  head[CRASHES_ALONE] = variant[SETTLE_CRASHES_ALONE]
  head[SNOOZES], head[IS_SUSPECT] = variant[SETTLE_SNOOZES], variant[SETTLE_IS_SUSPECT]
  head[WORKER], head[STARTED_AT], head[LEASE_UNTIL] = '', 0, 0
  head[IS_CANCEL_ASKED], head[PROGRESS] = 0, ''
  head[GATE], head[CHARGED] = '', -1
  if state == DELAYED then
    head[RUN_AT] = NOW + variant[SETTLE_DELAY]
  elseif is_finished(state) then
    head[SETTLED_AT] = NOW
    if result then
      page.store_result(id, head, result)
    end
    if head[IDEMPOTENCY_KEY] ~= '' or head[DEDUP_KEY] ~= '' then
      keys.finish(id, head, head)
    end
  end
  if state == DEAD then
    deaths.note(id, head, failure)
  end
  enter_state(id, head, tenant_queue)
  put_head(id, head)
  release(gate, tenant_queue)
end

-- Settle a job by the next settlement, and return its new state; 0 if the claim was lost.
function page.settle_next(id)
  local head = heads[id]
  local plain, variant = page.next_variant(head)
  budgets.report(id, plain[SETTLE_FENCE], 'settled', plain[SETTLE_SPENT], scope)
  local failure, log, result, metadata = NIL, NIL, false, false
  if plain[SETTLE_HAS_FAILURE] + plain[SETTLE_HAS_LOG] + plain[SETTLE_HAS_RESULT] + plain[SETTLE_HAS_METADATA] > 0 then
    failure, log, result, metadata = page.next_arguments(plain)
  end
  if not page.is_current(head, plain[SETTLE_FENCE]) then
    return 0
  end
  if metadata then
    hset('$bodies', id, with_metadata(hget('$bodies', id), metadata))
  end
  page.settle(id, head, variant, failure, log, result)
  return variant[SETTLE_STATE]
end

local states = {}
load_heads(ids)
page.load_tenant_queues(ids)
for i, id in ipairs(ids) do
  states[i] = page.settle_next(id)
end
if ARGV[6] == '' then
  commit()
  return {states}
end
return {states, claim_with_page(unpack_one(ARGV[6]), '$continuation' .. ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]))}
