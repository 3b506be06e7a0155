-- Hand out jobs in the fair order, one after the other (S35, S41-S48). The order is that of the contract: the
-- lowest clock, then the lowest head of its strands; everything met that may not be served is parked. `carry` is
-- what a claim knows when a script ends before the claim does: no script serves or promotes more than so many.

local function is_any_expired()
  local entry = sorted('$expiries'):first()
  return entry ~= nil and entry[1] <= NOW
end

-- Make due delayed jobs of a queue ready, earliest first, at most so many; say how many there were.
local function promote_due(queue, most)
  if queue.delayed == 0 then
    return 0
  end
  local line, ids = sorted('$delayed' .. queue.name), {}
  local entry = line:first()
  while entry and entry[1] <= NOW and #ids < most do
    ids[#ids + 1] = entry[3]
    line:remove(entry[3])
    entry = line:first()
  end
  know_heads(ids)
  for _, id in ipairs(ids) do
    local after = copy(heads[id])
    after[STATE], after[BECAUSE] = DUE_TO, ''
    move(id, heads[id], after)
  end
  return #ids
end

local function expire(id)
  local before = head_of(id)
  local after = copy(before)
  after[STATE], after[BECAUSE], after[SETTLED_AT] = EXPIRE_TO, EXPIRED, NOW
  move(id, before, after)
end

local function next_turn(queue, is_new, most)
  local entry, line = first_turn(queue, is_new)
  if not entry then
    return nil
  end
  local turn = queue.turns[entry[3]]
  if turn then
    return turn
  end
  local tenants, subjects = {}, {}
  for i = line.at, math.min(#line.page, line.at + most) do
    tenants[#tenants + 1] = line.page[i]:sub(PLACE + 1)
  end
  know_turns(queue, tenants)
  if is_any_special() then
    for i, tenant in ipairs(tenants) do
      subjects[i] = 'tenant ' .. tenant
    end
    know_policies(subjects)
  end
  return turn_named(queue, entry[3])
end

local function own_turn(queue, tenant)
  local turn = turn_named(queue, tenant)
  return turn.is_ready and turn or nil
end

local function estimate_of(queue, task, id)
  local cost = tonumber(look('$estimates', queue.name .. '\0' .. task) or FIRST_ESTIMATE)
  local timeout = head_of(id)[TIMEOUT]
  return timeout >= 0 and math.min(cost, timeout) or cost
end

local NO_HOLD = {'', -1}
local holds = {} -- by id: the gate and the charge of a job that was served, if it has any

local function serve(queue, turn, task, id, is_lowest)
  queue.floor = is_lowest and math.max(queue.floor, turn.clock) or virtual_now(queue)
  local stride, cost, gate = stride_of(turn), -1, count_start(turn, task)
  if queue.rules.cost == 'seconds' then
    cost = estimate_of(queue, task, id)
  end
  if cost >= 0 or gate ~= '' then
    holds[id] = {gate, cost}
  end
  turn.clock = turn.clock + (cost < 0 and stride or charge_for(stride, cost))
  turn[RUNNING] = turn[RUNNING] + 1
  take_ready(turn, task, id)
  return id
end

local may_end -- how many jobs this script may still serve, or end because they have expired; who was woken counts, too

-- Serve the one job whose turn it is; nil if there is none, or this script has done enough.
local function serve_one(queue, waking, carry, is_new, most, only)
  while carry.parks < PARK_MOST do
    if may_end == 0 then
      return nil
    end
    local turn
    if only then
      turn = own_turn(queue, only)
    else
      turn = next_turn(queue, is_new, most)
    end
    if not turn then
      if not fill_gates(queue, waking, {}, WAKE_STEP) then
        return nil
      end
    else
      local block = turn_block(turn)
      if block then
        park(turn, '', block)
        carry.parks = carry.parks + 1
      else
        local task, strand = first_strand(turn)
        block = strand_block(task)
        if block then
          park(turn, task, block)
          carry.parks = carry.parks + 1
        else
          local id = strand[4]
          local expires_at = carry.may_expire and head_of(id)[EXPIRES_AT] or 0
          may_end = may_end - 1
          if expires_at == 0 or NOW < expires_at then
            return serve(queue, turn, task, id, not only and not is_new)
          end
          expire(id)
        end
      end
    end
  end
  carry.is_cut_short = true
  return nil
end

-- Make a queue ready: what time, a changed policy or a gate's room lets in. False: there is more that is due.
local function make_ready(queue, waking, carry, most)
  local count = promote_due(queue, math.min(most, DUE_MOST - waking.due))
  waking.due = waking.due + count
  if waking.due == DUE_MOST then
    carry.is_cut_short = true
  elseif count == most then
    return false
  end
  return wake(queue, waking, WAKE_STEP)
end

local function begin_claim()
  return {wish = 1, taken = {}, served = 0, parks = 0, is_cut_short = false, queues = {}}
end

-- Serve wishes in order, at most `most` jobs; give them, and whether the claim is at its end.
local function hand_out(request, carry, most, only)
  local served, total = {}, request.total
  may_end = most
  carry.may_expire = is_any_expired()
  while carry.wish <= #request.wishes and carry.served < total do
    local name, wanted = unpack(request.wishes[carry.wish])
    local taken = carry.taken[carry.wish] or 0
    local queue, waking = queue_named(name), carry.queues[name]
    if not waking then
      waking = begin_waking(only)
      carry.queues[name] = waking
    end
    if not waking.is_awake then
      local before = waking.left + waking.marks - waking.due
      if not make_ready(queue, waking, carry, most) then
        return served, false
      end
      waking.is_awake = true
      may_end = math.max(1, may_end + waking.left + waking.marks - waking.due - before)
    end
    know_policies({queue.subject, EVERYONE})
    queue.rules = rules_of(queue.subject)
    local has_rate = queue.rules.rate
    local is_held = queue_block(queue)
    while not is_held and taken < wanted and carry.served < total do
      local left = math.min(total - carry.served, wanted - taken, may_end)
      local id = serve_one(queue, waking, carry, total - carry.served <= request.headroom, left, only)
      if may_end == 0 and not id then
        return served, false
      elseif not id then
        break
      end
      served[#served + 1] = id
      taken, carry.served = taken + 1, carry.served + 1
      carry.taken[carry.wish] = taken
      is_held = has_rate and queue_block(queue)
    end
    carry.taken[carry.wish] = taken
    carry.wish = carry.wish + 1
  end
  return served, true
end

local function is_partial(request, carry)
  local is_bound_met = carry.is_cut_short
  for _, waking in pairs(carry.queues) do
    is_bound_met = is_bound_met or waking.is_partial
  end
  return is_bound_met and carry.served < request.total
end

-- Say when time alone makes the next job of these queues claimable; 0 if nothing is known.
local function next_due(names)
  local instant = 0
  local function note(other)
    if other and other ~= 0 and (instant == 0 or other < instant) then
      instant = other
    end
  end
  for _, name in ipairs(names) do
    local queue = queue_named(name)
    local delayed, woken = queue.delayed > 0 and sorted('$delayed' .. name):first(), queue.woken:first()
    note(delayed and delayed[1])
    note(woken and woken[1])
    note(queue.marks[1] and queue.marks[1][3])
    local block = queue.ready > 0 and queue_block(queue)
    note(block and block[3])
  end
  return instant
end

-- Put a job into the hands of a worker; give its head and its attempts.
local function hand_over_one(request, id, head)
  local hold, kept = holds[id] or NO_HOLD, head[ATTEMPT] > 0 and (noted[id] or look('$attempts', id)) or ''
  head[STATE], head[ATTEMPT], head[FENCE] = CLAIM_TO, head[ATTEMPT] + 1, math.max(head[FENCE] + 1, NOW)
  head[WORKER], head[STARTED_AT], head[LEASE_UNTIL] = request.worker, NOW, NOW + request.lease
  head[GATE], head[CHARGED], head[IS_ALONE] = hold[1], hold[2], request.isolates and head[IS_SUSPECT] or 0
  if head[IS_DEDUP_SHORT] == 1 then
    free_dedup(id, head)
  end
  if head[EXPIRES_AT] > 0 then
    sorted('$expiries'):remove(id)
  end
  local bytes = write_head(head)
  append('HSET', '$heads', id, bytes)
  return bytes, kept
end

-- Hand over what was served; give id, head, body and attempts of each, one after the other. Most jobs are claimed for the
-- first time and hold nothing: all that the claim adds to their heads is the same, so they come with those they had.
local function hand_over(request, served)
  local reply, bytes_of, bodies = {}, read_fields('$heads', served), read_fields('$bodies', served)
  local lease_until, life = NOW + request.lease, first_life(request.worker, NOW + request.lease)
  for i, id in ipairs(served) do
    local head, bytes, kept = heads[id], bytes_of[i], ''
    if not head and not holds[id] and is_plain(bytes) then
      append('HSET', '$heads', id, claimed_first(bytes, life))
    else
      bytes, kept = hand_over_one(request, id, head or read_head(bytes))
    end
    add('$leases', lease_until, id)
    local count = #reply
    reply[count + 1], reply[count + 2], reply[count + 3], reply[count + 4] = id, bytes, bodies[i], kept
  end
  return reply
end

-- One script's part of a claim, of so many jobs: the carry ('' at its end), when to look again, whether partial, the
-- instant, the claims.
local function claim(request, carry, most)
  local served, is_done = hand_out(request, carry, most)
  local claims, due, partial = hand_over(request, served), 0, false
  if is_done and carry.served < request.total then
    local names = {}
    for name in pairs(carry.queues) do
      names[#names + 1] = name
    end
    due, partial = next_due(names), is_partial(request, carry)
  end
  commit()
  return {is_done and '' or pack(carry), due, partial and 1 or 0, NOW, claims}
end

-- The part of a claim that comes with one page of settlements. Each page goes on where the one before stopped, by what
-- that has kept; only the last gives the carry. A claim that is at its end before the settlements are begins anew with
-- the next page, which may have let something in.
local function claim_in_pages(request, key, page, pages)
  local stored = page > 1 and call('GET', P .. key)
  if page > 1 and not stored then -- a page before was refused, and may come once more
    commit()
    return {'', 0, 1, NOW, {}}
  end
  local carry = stored and unpack_one(stored) or begin_claim()
  local answer = claim(request, carry, CLAIM_MOST)
  if page == pages then
    if stored then
      call('DEL', P .. key)
    end
    return answer
  end
  if answer[1] == '' then
    carry.wish, carry.parks, carry.is_cut_short, carry.queues = 1, 0, false, {}
  end
  call('SET', P .. key, pack(carry), 'PX', STAGED_LASTS)
  return answer
end
