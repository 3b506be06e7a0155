-- uses: rules records lines strands turns parking blocks homes handout
-- Settle: end attempts as their settlements say, and claim the next (S35-S37). ARGV: worker, tenant of the scope
-- or '', the settlements, the ids, a claim or '', the name of its carry, the number of this page and how many there are;
-- then of each settlement the packed failure, the packed log and the result it has.
-- Each settlement has up to three forms, worked out by `judge.heed` beforehand: as it is, for a job that was asked to
-- stop, for one that would come back after its expiry. Which of them holds is looked up here.
local worker, scope = ARGV[2], ARGV[3]
local ids = read_ids(ARGV[5])
know_heads(ids)
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
  know_turns(queue_named(name), tenants)
end

local function is_held(head, fence)
  return head and head[STATE] == RUNNING and head[FENCE] == fence and head[WORKER] == worker
    and (scope == '' or scope == head[TENANT])
end

local endings, at, part = ARGV[4], 1, 10
local last, last_bytes, last_size = false, false, 0

-- Give the next settlement as it is. Most of a page differ from the one before in their fences alone, which come first.
local function next_plain()
  if endings:sub(at + 8, at + last_size - 1) == last_bytes then
    last[FENCE_SO] = struct.unpack('>i8', endings, at)
    at = at + last_size
    return last
  end
  local plain = {struct.unpack(FORM_SO, endings, at)}
  last, last_size = plain, plain[NEXT_SO] - at
  last_bytes, at = endings:sub(at + 8, at + last_size - 1), plain[NEXT_SO]
  return plain
end

-- Give the next settlement as it is, and the form of it that holds.
local function next_form(head)
  local plain = next_plain()
  local form = plain
  if plain[HAS_ASKED_SO] == 1 then
    local asked = {struct.unpack(FORM_SO, endings, at)}
    at = asked[NEXT_SO]
    if head and head[IS_CANCEL_ASKED] == 1 then
      asked[BECAUSE_SO] = head[BECAUSE]
      form = asked
    end
  end
  if plain[HAS_LATE_SO] == 1 then
    local late = {struct.unpack(FORM_SO, endings, at)}
    at = late[NEXT_SO]
    if form == plain and head and head[EXPIRES_AT] > 0 and NOW + plain[DELAY_SO] >= head[EXPIRES_AT] then
      form = late
    end
  end
  return plain, form
end

local function next_part(is_given, otherwise)
  if is_given == 0 then
    return otherwise
  end
  part = part + 1
  return ARGV[part - 1]
end

local function next_parts(plain)
  local failure, log = next_part(plain[HAS_FAILURE_SO], NIL), next_part(plain[HAS_LOG_SO], NIL)
  return failure, log, next_part(plain[HAS_RESULT_SO], false)
end

local function learn(head, outcome)
  if outcome == 'succeeded' or outcome == 'failed' then
    local name = head[QUEUE] .. '\0' .. head[TASK]
    local estimate = tonumber(look('$estimates', name) or FIRST_ESTIMATE)
    put('$estimates', name, estimate + floor((NOW - head[STARTED_AT] - estimate) / 10))
  end
end

local function keep_result(id, head, result)
  head[HAS_RESULT] = 1
  put('$results', id, result)
  if result ~= '' then
    add('$results_kept', NOW, id)
  end
end

-- As `move` does, in place: of a running job all that its end changes is known.
local function settle(id, head, form, failure, log, result)
  local turn, state, gate = turn_of(head), form[STATE_SO], head[GATE]
  note_attempt(id, head, form[OUTCOME_SO], failure, log)
  if head[CHARGED] >= 0 then
    learn(head, form[OUTCOME_SO])
    charge_time(turn, head, true)
  end
  if head[IS_CANCEL_ASKED] == 1 then
    remove('$asked', id)
  end
  leave(id, head, turn)
  head[STATE], head[BECAUSE] = state, form[BECAUSE_SO]
  head[FAILURES], head[CRASHES], head[CRASHES_ALONE] = form[FAILURES_SO], form[CRASHES_SO], form[CRASHES_ALONE_SO]
  head[SNOOZES], head[IS_SUSPECT] = form[SNOOZES_SO], form[IS_SUSPECT_SO]
  head[WORKER], head[STARTED_AT], head[LEASE_UNTIL] = '', 0, 0
  head[IS_CANCEL_ASKED], head[PROGRESS] = 0, ''
  head[GATE], head[IS_ALONE], head[CHARGED] = '', 0, -1
  if state == DELAYED then
    head[RUN_AT] = NOW + form[DELAY_SO]
  elseif is_finished(state) then
    head[SETTLED_AT] = NOW
    if result then
      keep_result(id, head, result)
    end
    if head[IDEMPOTENCY_KEY] ~= '' or head[DEDUP_KEY] ~= '' then
      free_keys(id, head, head)
    end
  end
  enter(id, head, turn)
  put_head(id, head)
  release(gate, turn)
end

local states = {}
for i, id in ipairs(ids) do
  local head = heads[id]
  local plain, form = next_form(head)
  local failure, log, result = NIL, NIL, false
  if plain[HAS_FAILURE_SO] + plain[HAS_LOG_SO] + plain[HAS_RESULT_SO] > 0 then
    failure, log, result = next_parts(plain)
  end
  states[i] = 0
  if is_held(head, plain[FENCE_SO]) then
    settle(id, head, form, failure, log, result)
    states[i] = form[STATE_SO]
  end
end
if ARGV[6] == '' then
  commit()
  return {states}
end
return {states, claim_in_pages(unpack_one(ARGV[6]), '$carry' .. ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]))}
