-- uses: rules records turns parking blocks homes handout
-- Settle: end attempts as their settlements say, and claim the next (S35-S37). ARGV: worker, tenant of the scope
-- or '', the settlements, results and packed failures and logs, a claim or ''. Each settlement has up to three
-- forms, worked out by `judge.heed` beforehand: as it is, for a job that was asked to stop, for one that would
-- come back after its expiry. Which of them holds is looked up here.
local worker, scope = ARGV[2], ARGV[3]
local settlements = unpack_one(ARGV[4])
local ids = {}
for i = 1, #settlements do
  ids[i] = ARGV[5]:sub(i * 16 - 15, i * 16)
end
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

local function form_of(head, forms)
  if head[IS_CANCEL_ASKED] and forms.asked then
    forms.asked.because = head[BECAUSE]
    return forms.asked
  end
  if forms.late and head[EXPIRES_AT] > 0 and NOW + forms.plain.delay >= head[EXPIRES_AT] then
    return forms.late
  end
  return forms.plain
end

local function learn(head, outcome)
  if head[CHARGED] >= 0 and (outcome == 'succeeded' or outcome == 'failed') then
    local name = head[QUEUE] .. '\0' .. head[TASK]
    local estimate = tonumber(look('$estimates', name) or FIRST_ESTIMATE)
    put('$estimates', name, estimate + floor((NOW - head[STARTED_AT] - estimate) / 10))
  end
end

local function settle(id, head, form, parts)
  learn(head, form.outcome)
  note_attempt(id, head, form.outcome, parts[1], parts[2])
  local after = copy(head)
  after[STATE], after[BECAUSE] = form.state, form.because
  after[FAILURES], after[CRASHES], after[CRASHES_ALONE] = form.failures, form.crashes, form.crashes_alone
  after[SNOOZES], after[IS_SUSPECT] = form.snoozes, form.is_suspect
  after[WORKER], after[STARTED_AT], after[LEASE_UNTIL] = '', 0, 0
  after[IS_CANCEL_ASKED], after[PROGRESS] = false, ''
  if form.state == DELAYED then
    after[RUN_AT] = NOW + form.delay
  elseif is_finished(form.state) then
    after[SETTLED_AT] = NOW
    if parts[3] then
      after[HAS_RESULT] = true
      put('$results', id, parts[3])
      if parts[3] ~= '' then
        sorted('$results_kept'):add(NOW, id)
      end
    end
  end
  move(id, head, after)
end

local states, at = {}, 7
for i, one in ipairs(settlements) do
  local head, parts = head_of(ids[i]), {ARGV[at], ARGV[at + 1], one.has_result and ARGV[at + 2]}
  at = at + (one.has_result and 3 or 2)
  states[i] = 0
  if is_held(head, one.fence) then
    local form = form_of(head, one)
    settle(ids[i], head, form, parts)
    states[i] = form.state
  end
end
if ARGV[6] == '' then
  commit()
  return {states}
end
return {states, claim(unpack_one(ARGV[6]), begin_claim())}
