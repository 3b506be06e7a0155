-- uses: rules records lines turns parking blocks homes handout
-- Settle: end attempts as their settlements say, and claim the next (S35-S37). ARGV: worker, tenant of the scope
-- or '', the settlements, results and packed failures and logs, a claim or ''. Each settlement has up to three
-- forms, worked out by `judge.heed` beforehand: as it is, for a job that was asked to stop, for one that would
-- come back after its expiry. Which of them holds is looked up here.
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

-- Give the form that holds, and where the next settlement begins; of a job that is not held, the latter.
local function form_of(head, at)
  local plain = {struct.unpack(FORM_SO, ARGV[4], at)}
  local asked, late
  at = plain[NEXT_SO]
  if plain[HAS_ASKED_SO] == 1 then
    asked = {struct.unpack(FORM_SO, ARGV[4], at)}
    at = asked[NEXT_SO]
  end
  if plain[HAS_LATE_SO] == 1 then
    late = {struct.unpack(FORM_SO, ARGV[4], at)}
    at = late[NEXT_SO]
  end
  if asked and head and head[IS_CANCEL_ASKED] == 1 then
    asked[BECAUSE_SO] = head[BECAUSE]
    return asked, at, plain
  end
  if late and head and head[EXPIRES_AT] > 0 and NOW + plain[DELAY_SO] >= head[EXPIRES_AT] then
    return late, at, plain
  end
  return plain, at, plain
end

local function learn(head, outcome)
  if head[CHARGED] >= 0 and (outcome == 'succeeded' or outcome == 'failed') then
    local name = head[QUEUE] .. '\0' .. head[TASK]
    local estimate = tonumber(look('$estimates', name) or FIRST_ESTIMATE)
    put('$estimates', name, estimate + floor((NOW - head[STARTED_AT] - estimate) / 10))
  end
end

local function settle(id, head, form, parts)
  learn(head, form[OUTCOME_SO])
  note_attempt(id, head, form[OUTCOME_SO], parts[1], parts[2])
  local after, state = copy(head), form[STATE_SO]
  after[STATE], after[BECAUSE] = state, form[BECAUSE_SO]
  after[FAILURES], after[CRASHES], after[CRASHES_ALONE] = form[FAILURES_SO], form[CRASHES_SO], form[CRASHES_ALONE_SO]
  after[SNOOZES], after[IS_SUSPECT] = form[SNOOZES_SO], form[IS_SUSPECT_SO]
  after[WORKER], after[STARTED_AT], after[LEASE_UNTIL] = '', 0, 0
  after[IS_CANCEL_ASKED], after[PROGRESS] = 0, ''
  if state == DELAYED then
    after[RUN_AT] = NOW + form[DELAY_SO]
  elseif is_finished(state) then
    after[SETTLED_AT] = NOW
    if parts[3] then
      after[HAS_RESULT] = 1
      put('$results', id, parts[3])
      if parts[3] ~= '' then
        sorted('$results_kept'):add(NOW, id)
      end
    end
  end
  move(id, head, after)
end

local states, at, part = {}, 1, 7
for i, id in ipairs(ids) do
  local head, form, plain = head_of(id), nil, nil
  form, at, plain = form_of(head, at)
  local has_result = plain[HAS_RESULT_SO] == 1
  states[i] = 0
  if is_held(head, plain[FENCE_SO]) then
    settle(id, head, form, {ARGV[part], ARGV[part + 1], has_result and ARGV[part + 2]})
    states[i] = form[STATE_SO]
  end
  part = part + (has_result and 3 or 2)
end
if ARGV[6] == '' then
  commit()
  return {states}
end
-- Both together take no longer than a claim of the usual size: the rest of it is the next script's.
return {states, claim(unpack_one(ARGV[6]), begin_claim(), CLAIM_MOST - floor(#ids / 2))}
