-- uses: journal jobs/job_body limits/policies
-- Budgets (S59, S114, S115): accounts, whether a job may start, what its claim reserves. As model/policy/budget.py decides.
-- `budget_accounts` of a budget has by tenant, or nothing for all, {STARTS_AT, ENDS_AT, SPENT, RESERVED, TOLD, IS_WAITED_FOR};
-- `budget_claims` by id and fence {BUDGET, ACCOUNT, TASK, TENANT, CREATED_BY, ESTIMATE, SPENT, PERIOD, ENDED_AT};
-- `budget_periods` by budget when its periods begin. Amounts are whole millionths, below 2^53.
-- In one table: Lua allows 200 local names, and a script that settles has nearly as many.

local budgets = {accounts = {}, changed = {}, started = {}, over = {}, begun = {}, spenders = {}}

-- Let an account begin the period of this instant, if its own has ended and the calendar knows the next.
function budgets.roll(account)
  local starts = unpack_one(hget('$budget_periods', account.budget) or pack(EMPTY))
  local place = #starts
  while place > 0 and starts[place] > NOW do
    place = place - 1
  end
  if place > 0 and starts[place + 1] then
    account[ACCOUNT_STARTS_AT], account[ACCOUNT_ENDS_AT] = starts[place], starts[place + 1]
    account[ACCOUNT_SPENT], account[ACCOUNT_TOLD] = 0, 0
    account.has_begun = true
  end
end

function budgets.account(budget, tenant)
  local key = budget .. '\0' .. tenant
  local account = budgets.accounts[key]
  if not account then
    local stored = hget('$budget_accounts' .. budget, tenant)
    account = stored and unpack_one(stored) or {0, 0, 0, 0, 0, 0}
    account.budget, account.tenant = budget, tenant
    if account[ACCOUNT_ENDS_AT] <= NOW then
      budgets.roll(account)
    end
    budgets.accounts[key] = account
  end
  return account
end

function budgets.change(account)
  budgets.changed[account.budget .. '\0' .. account.tenant] = account
  if account.has_begun then
    budgets.begun[account.budget], account.has_begun = account[ACCOUNT_STARTS_AT], false
  end
end

-- Return the account that bounds a tenant's jobs of a task, and the rules of its budget; nothing if none does.
function budgets.of(task, tenant)
  local name = rules_of('task ' .. task).budget
  local rules = name and rules_of('budget ' .. name)
  if rules and rules.ceiling then
    return budgets.account(name, rules.per_tenant and tenant or ''), rules
  end
end

function budgets.has_room(rules, used)
  return used < rules.ceiling and used + rules.estimate <= rules.ceiling
end

-- Return 'start', 'park' or 'fail'.
function budgets.decide(account, rules)
  if budgets.has_room(rules, account[ACCOUNT_SPENT] + account[ACCOUNT_RESERVED]) then
    return 'start'
  end
  return rules.on_spent == 'fail' and not budgets.has_room(rules, account[ACCOUNT_SPENT]) and 'fail' or 'park'
end

function budgets.block(task, tenant)
  local account, rules = budgets.of(task, tenant)
  if account and budgets.decide(account, rules) == 'park' then
    local subject = 'budget ' .. account.budget
    return {'budget', subject, or_override_end(account[ACCOUNT_ENDS_AT] > NOW and account[ACCOUNT_ENDS_AT] or 0, {subject})}
  end
end

-- Append the events of an account that were not told in this period.
function budgets.tell(account, rules)
  local is_spent, reached = not budgets.has_room(rules, account[ACCOUNT_SPENT]), 0
  for _, share in ipairs(rules.alert_at) do
    if is_spent or account[ACCOUNT_SPENT] * 100 >= rules.ceiling * share then
      reached = reached + 1
    end
  end
  for i = account[ACCOUNT_TOLD] + 1, reached do
    journal.append('events', pack({
      'budget', account.budget, account.tenant, rules.ceiling, rules.currency, account[ACCOUNT_STARTS_AT],
      account[ACCOUNT_ENDS_AT], account[ACCOUNT_SPENT], rules.alert_at[i],
    }))
  end
  account[ACCOUNT_TOLD] = math.max(reached, account[ACCOUNT_TOLD])
end

-- Note that a job found no room: its strand waits, or it is dead because of it.
function budgets.note_no_room(task, tenant, is_waiting)
  local account, rules = budgets.of(task, tenant)
  budgets.tell(account, rules)
  if is_waiting then
    account[ACCOUNT_IS_WAITED_FOR] = 1
  end
  budgets.change(account)
end

-- Reserve the estimate for a job that starts, if it is under a budget; return whether it is.
function budgets.start(task, tenant, id)
  local account, rules = budgets.of(task, tenant)
  if not account then
    return false
  end
  if budgets.decide(account, rules) == 'start' then
    account[ACCOUNT_RESERVED] = account[ACCOUNT_RESERVED] + rules.estimate
    budgets.started[id] = {account, rules.estimate}
    budgets.change(account)
  else
    budgets.over[#budgets.over + 1] = id
    budgets.note_no_room(task, tenant, false)
  end
  return true
end

-- Note what the claim of a job that has started holds.
function budgets.note_claim(id, head, body)
  local started = budgets.started[id]
  if started then
    local account, created_by = started[1], read_body(body)[BODY_CREATED_BY]
    hset('$budget_claims', id .. struct.pack('>i8', head[FENCE]), pack({
      account.budget, account.tenant, head[TASK], head[TENANT], created_by or '', started[2], 0, account[ACCOUNT_STARTS_AT], 0,
    }))
  end
end

-- Put the accounts into the buffer: at the end, or for the next script of a peek.
function budgets.write()
  for _, account in pairs(budgets.changed) do
    hset('$budget_accounts' .. account.budget, account.tenant, pack({unpack(account, 1, ACCOUNT_IS_WAITED_FOR)}))
    sorted_set('$budget_tenants' .. account.budget):add(0, account.tenant)
  end
end

before_commit[#before_commit + 1] = budgets.write

-- Delete what is too old, whenever a period has begun.
with_commit[#with_commit + 1] = function()
  for budget, starts_at in pairs(budgets.begun) do
    local periods = PREFIX .. '$budget_spend_periods' .. budget
    for _, old in ipairs(call('ZRANGEBYSCORE', periods, 0, starts_at - SPEND_KEPT - 1)) do
      call('DEL', PREFIX .. '$budget_spend' .. budget .. '\0' .. old)
      call('ZREM', periods, old)
    end
    local ended = PREFIX .. '$budget_claims_ended'
    for _, old in ipairs(call('ZRANGEBYSCORE', ended, 0, starts_at - CLAIMS_KEPT - 1, 'LIMIT', 0, 500)) do
      call('HDEL', PREFIX .. '$budget_claims', old)
      call('ZREM', ended, old)
    end
  end
end
