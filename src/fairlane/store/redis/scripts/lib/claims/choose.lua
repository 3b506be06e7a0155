-- uses: jobs/state_changes queues/unparking limits/blocks claims/look_ahead
-- Choose the next jobs in the fair order (S35, S41-S48): of the ready tenant with the lowest vt the strand with
-- the first head. Whatever is met on the way that may not run is parked. The continuation is what the next script of
-- the same claim must know.
-- Bounds of one script: it starts or expires at most 40 jobs. Preparing costs budget too, but always leaves 1, and its
-- bounds are per queue: at most 40 jobs promoted and 50 members unparked, or taken from changed groups. Parking costs
-- no budget; MAX_PARKED bounds it per claim. While a queue is served, waiters of gates are unparked whenever nothing is
-- ready, at most UNPARK_STEP at a time.
-- The part of a claim that is ahead of free slots ends the claim before the first job that may not be (look_ahead.lua).
-- That job stays as it is, in its place.
-- Reads the hash `estimates` and the sorted sets `delayed` by queue and `expiries`.
--
-- Example. A worker asks for 3 jobs of a queue; a job costs 10 of its tenant's virtual time. Every strand has several
-- jobs, and nothing runs:
--
--   tenant       vt  ready since  strands, with the sort key of the head
--   acme        30        7       bill 400, send 500
--   globex      30        9       send 450
--   initech     50        3       send 100
--
--   1. acme is first: the lowest vt and, among equals, the longest ready. Its first head is that of bill, but the
--      gate of that task is full. The strand (acme, bill) is parked and waits for a slot; acme stays in the index.
--   2. acme is still first, now with send: start job 1. Its vt becomes 40, and it moves behind globex.
--   3. globex: start job 2. Its vt becomes 40, behind acme (40, ready since 7).
--   4. With a headroom of 0: acme again, start job 3.
--      With a headroom of 1, the last slot goes only to a tenant with nothing running: initech, though its vt is
--      higher. Start job 3 there.
--
-- A job that has expired is cancelled instead of started, and costs budget as well: a script with a budget of 40 that
-- meets 40 expired jobs returns no job and a continuation.

-- ── the budget of this script ────────────────────────────────────────────────

local budget = 0 -- what this script may still do: a job that is started, expired or promoted, a member unparked

local function spend(count)
  budget = budget - count
end

-- Spend what preparing a queue has cost, but leave enough for one job: every script makes progress.
local function spend_on_preparing(count)
  budget = math.max(1, budget - count)
end

-- ── due and expired jobs ─────────────────────────────────────────────────────

local function is_any_expired()
  local entry = sorted_set('$expiries'):first()
  return entry ~= nil and entry[SCORE] <= NOW
end

-- Make due delayed jobs of a queue ready, earliest first, at most `limit`. Return how many.
local function promote_due(queue, limit)
  if queue.delayed == 0 then
    return 0
  end
  local delayed, ids = sorted_set('$delayed' .. queue.name), {}
  local entry = delayed:first()
  while entry and entry[SCORE] <= NOW and #ids < limit do
    ids[#ids + 1] = entry[MEMBER]
    delayed:remove(entry[MEMBER])
    entry = delayed:first()
  end
  load_heads(ids)
  for _, id in ipairs(ids) do
    local after = copy_head(heads[id])
    after[STATE], after[BECAUSE] = DUE_TO, ''
    change_job(id, heads[id], after)
  end
  return #ids
end

local function expire(id)
  local before = head_of(id)
  local after = copy_head(before)
  after[STATE], after[BECAUSE], after[SETTLED_AT] = EXPIRE_TO, EXPIRED, NOW
  change_job(id, before, after)
end

-- ── the next tenant ──────────────────────────────────────────────────────────

-- Return the first ready tenant queue, or nil. `idle_only`: only among tenants with nothing running in this queue, as
-- for the last slots of a lane (headroom). One that is not loaded yet is loaded together with the next `limit`.
local function next_tenant_queue(queue, idle_only, limit)
  local entry, index = first_tenant_queue(queue, idle_only)
  if not entry then
    return nil
  end
  local tenant_queue = queue.tenant_queues[entry[MEMBER]]
  if tenant_queue then
    return tenant_queue
  end
  local tenants, subjects = {}, {}
  for i = index.at, math.min(#index.page, index.at + limit) do
    tenants[#tenants + 1] = index.page[i]:sub(INDEX_PLACE_SIZE + 1)
  end
  load_tenant_queues(queue, tenants)
  if any_tenant_policy() then
    for i, tenant in ipairs(tenants) do
      subjects[i] = 'tenant ' .. tenant
    end
    load_policies(subjects)
  end
  return tenant_queue_named(queue, entry[MEMBER])
end

local function own_tenant_queue(queue, tenant)
  local tenant_queue = tenant_queue_named(queue, tenant)
  return tenant_queue.is_ready and tenant_queue or nil
end

-- Return the task and the id of the job that goes first. Return nil if something holds it, which is parked.
local function first_job(tenant_queue)
  local block = tenant_block(tenant_queue)
  if block then
    park(tenant_queue, '', block)
    return nil
  end
  local task, strand = first_strand(tenant_queue)
  block = strand_block(task, tenant_queue.tenant)
  if block then
    if block[REASON] == 'budget' then
      budgets.note_no_room(task, tenant_queue.tenant, true)
    end
    park(tenant_queue, task, block)
    return nil
  end
  return task, strand[HEAD_ID]
end

-- ── one job ──────────────────────────────────────────────────────────────────

local function estimate_of(queue, task, id)
  local cost = tonumber(hget('$estimates', queue.name .. '\0' .. task) or FIRST_ESTIMATE)
  local timeout = head_of(id)[TIMEOUT]
  return timeout >= 0 and math.min(cost, timeout) or cost
end

local NO_CHARGE = {'', -1}
local charges = {} -- by id of a chosen job: {CHARGE_GATE, CHARGE_COST}, if it has a gate or a budget or its queue charges by time

local function start_job(queue, tenant_queue, task, id, is_lowest)
  queue.floor = is_lowest and math.max(queue.floor, tenant_queue.vt) or virtual_now(queue)
  local stride, cost, gate = stride_of(tenant_queue), -1, count_start(tenant_queue, task)
  if queue.rules.cost == 'seconds' then
    cost = estimate_of(queue, task, id)
  end
  if not free_tasks[task] then
    breakers.take(task, tenant_queue.tenant, id)
  end
  local has_budget = not free_tasks[task] and budgets.start(task, tenant_queue.tenant, id)
  if cost >= 0 or gate ~= '' or has_budget then
    charges[id] = {gate, cost}
  end
  tenant_queue.vt = tenant_queue.vt + (cost < 0 and stride or charge_for(stride, cost))
  tenant_queue[RUNNING] = tenant_queue[RUNNING] + 1
  remove_ready(tenant_queue, task, id)
  return id
end

-- Start the job that goes first in a queue. Return nil if there is none, a bound was met, or it may not be claimed
-- ahead (`is_ahead`).
local function next_job(queue, unpark_pass, continuation, idle_only, is_ahead, limit, only_tenant)
  while continuation.parks < MAX_PARKED do
    if budget == 0 then
      return nil
    end
    local tenant_queue
    if only_tenant then
      tenant_queue = own_tenant_queue(queue, only_tenant)
    else
      tenant_queue = next_tenant_queue(queue, idle_only, limit)
    end
    local task, id
    if tenant_queue then
      task, id = first_job(tenant_queue)
    elseif not unpark_at_gates(queue, unpark_pass, {}, UNPARK_STEP) then
      return nil
    end
    if task then
      spend(1)
      local expires_at = continuation.may_expire and head_of(id)[EXPIRES_AT] or 0
      if expires_at == 0 or NOW < expires_at then
        if is_ahead and not may_be_ahead(tenant_queue, task, id) then
          continuation.is_ahead_cut = true
          return nil
        end
        return start_job(queue, tenant_queue, task, id, not only_tenant and not idle_only)
      end
      expire(id)
    elseif tenant_queue then
      continuation.parks = continuation.parks + 1
    end
  end
  continuation.is_bound_met = true
  return nil
end

-- ── one claim ────────────────────────────────────────────────────────────────

-- Return the continuation of a claim that begins. `request_number`: the queue request it is at. `taken`: jobs by number
-- of the queue request; `claimed`: all of them. `parks`: what it has parked so far. `is_bound_met`: whether it stopped
-- at MAX_PARKED or MAX_DUE. `is_ahead_cut`: whether it ended before a job that may not be claimed ahead. `queues`: unpark
-- passes by name of the queue. Each script also sets `may_expire`: whether any waiting job has expired.
local function new_continuation()
  return {
    request_number = 1, taken = {}, claimed = 0, parks = 0, is_bound_met = false, is_ahead_cut = false, queues = {},
  }
end

local function work_left(unpark_pass)
  return unpark_pass.unparks_left + unpark_pass.changes_left - unpark_pass.promoted
end

-- Make ready what time, a changed policy or a gate's free slot lets in. Return false if there is more that is due.
local function make_ready(queue, unpark_pass, continuation, limit)
  local count = promote_due(queue, math.min(limit, MAX_DUE - unpark_pass.promoted))
  unpark_pass.promoted = unpark_pass.promoted + count
  if unpark_pass.promoted == MAX_DUE then
    continuation.is_bound_met = true
  elseif count == limit then
    return false
  end
  return run_unpark_pass(queue, unpark_pass, UNPARK_STEP)
end

-- Prepare a queue, once per claim. Return its unpark pass, and false if the next script must go on with it.
local function prepare_queue(queue, continuation, limit, only_tenant)
  local unpark_pass = continuation.queues[queue.name]
  if not unpark_pass then
    unpark_pass = new_unpark_pass(only_tenant)
    continuation.queues[queue.name] = unpark_pass
  end
  if not unpark_pass.is_done then
    local before = work_left(unpark_pass)
    if not make_ready(queue, unpark_pass, continuation, limit) then
      return unpark_pass, false
    end
    unpark_pass.is_done = true
    spend_on_preparing(before - work_left(unpark_pass))
  end
  return unpark_pass, true
end

-- Serve one queue of a request; append the ids to `claimed`. Return false if the budget ended before it was served.
local function serve_queue(request, continuation, queue, unpark_pass, claimed, only_tenant)
  local number, total = continuation.request_number, request.total
  local wanted, taken = request.queue_requests[number][REQUEST_LIMIT], continuation.taken[number] or 0
  local has_rate, block = queue.rules.rate, queue_block(queue)
  while not block and taken < wanted and continuation.claimed < total do
    local limit = math.min(total - continuation.claimed, wanted - taken, budget)
    local idle_only = total - continuation.claimed <= request.headroom
    local is_ahead = total - continuation.claimed <= request.ahead
    local id = next_job(queue, unpark_pass, continuation, idle_only, is_ahead, limit, only_tenant)
    if not id then
      return continuation.is_ahead_cut or budget > 0
    end
    claimed[#claimed + 1] = id
    taken, continuation.claimed = taken + 1, continuation.claimed + 1
    continuation.taken[number] = taken
    block = has_rate and queue_block(queue)
  end
  return true
end

-- Choose at most `limit` jobs, queue by queue in the order of the request. Return their ids, and whether the claim is
-- done. `only_tenant` is for a peek: as if no other tenant had jobs.
local function choose_jobs(request, continuation, limit, only_tenant)
  local claimed = {}
  budget = limit
  continuation.may_expire = is_any_expired()
  while
    continuation.request_number <= #request.queue_requests and continuation.claimed < request.total
    and not continuation.is_ahead_cut
  do
    local queue = load_queue(request.queue_requests[continuation.request_number][REQUEST_QUEUE])
    local unpark_pass, is_prepared = prepare_queue(queue, continuation, limit, only_tenant)
    if not is_prepared then
      return claimed, false
    end
    load_policies({queue.subject, EVERYONE})
    queue.rules = rules_of(queue.subject)
    if not serve_queue(request, continuation, queue, unpark_pass, claimed, only_tenant) then
      return claimed, false
    end
    continuation.request_number = continuation.request_number + 1
  end
  return claimed, true
end

-- Return whether a bound was met before the request was served: there may be more right now.
local function is_partial(request, continuation)
  local is_bound_met = continuation.is_bound_met
  for _, unpark_pass in pairs(continuation.queues) do
    is_bound_met = is_bound_met or unpark_pass.is_partial
  end
  return is_bound_met and continuation.claimed < request.total
end

-- Return the instant at which time alone makes the next job of these queues claimable; 0 if none is known.
local function next_due(names)
  local instant = 0
  local function note(other)
    if other and other ~= 0 and (instant == 0 or other < instant) then
      instant = other
    end
  end
  for _, name in ipairs(names) do
    local queue = load_queue(name)
    local delayed, parked = queue.delayed > 0 and sorted_set('$delayed' .. name):first(), queue.parked_until:first()
    note(delayed and delayed[SCORE])
    note(parked and parked[SCORE])
    for _, line in ipairs(gates_with_waiters(queue)) do
      local state = breakers.is_line(line) and breakers.state_of_line(line)
      note(state and breakers.opens_at(state))
    end
    note(queue.changed_groups[1] and queue.changed_groups[1][CHANGED_AT])
    local block = queue.ready > 0 and queue_block(queue)
    note(block and block[UNTIL])
  end
  return instant
end
