-- uses: limits/budgets queues/parking
-- What became of claims under a budget (S113): what was spent, by whom, and who waits for the room that comes back.
-- `budget_spend` by (budget, start of the period) has by {TASK, TENANT, CREATED_BY} what was spent; `budget_spend_periods`
-- by budget the periods; `budget_claims_ended` the claims that somebody else than their worker has ended, by that instant.

-- Let claims unpark who waits for room in a budget.
function budgets.wake(budget)
  for _, name in ipairs(call('HKEYS', PREFIX .. '$queues')) do
    mark_group(load_queue(name), 'b' .. budget)
  end
end

function budgets.add_spend(claim, starts_at, more)
  local period = string.format('%.0f', starts_at)
  local key = '$budget_spend' .. claim[CLAIM_BUDGET] .. '\0' .. period
  local who = pack({claim[CLAIM_TASK], claim[CLAIM_TENANT], claim[CLAIM_CREATED_BY]})
  local known = hget(key, who)
  if not known then
    budgets.spenders[key] = budgets.spenders[key] or call('HLEN', PREFIX .. key)
    if budgets.spenders[key] >= MAX_SPENDERS then
      who = pack({OTHERS, OTHERS, OTHERS})
      known = hget(key, who)
    end
    budgets.spenders[key] = budgets.spenders[key] + (known and 0 or 1)
  end
  hset(key, who, string.format('%.0f', (known or 0) + more))
  sorted_set('$budget_spend_periods' .. claim[CLAIM_BUDGET]):add(starts_at, period)
end

-- Count what became of a claim: it was renewed or settled by its worker, who has spent `total` so far, or ended by somebody
-- else. `scope` is the tenant whose claims alone count, or ''.
function budgets.report(id, fence, kind, total, scope)
  if budgets.is_used == nil then
    budgets.is_used = call('EXISTS', PREFIX .. '$budget_claims') == 1
  end
  local name = budgets.is_used and id .. struct.pack('>i8', fence)
  local stored = name and hget('$budget_claims', name)
  if not stored then
    return
  end
  local claim = unpack_one(stored)
  local was_ended = claim[CLAIM_ENDED_AT] > 0
  if (scope ~= '' and scope ~= claim[CLAIM_TENANT]) or (was_ended and kind ~= 'settled') then
    return
  end
  local account, rules = budgets.account(claim[CLAIM_BUDGET], claim[CLAIM_ACCOUNT]), rules_of('budget ' .. claim[CLAIM_BUDGET])
  local estimate, spent, starts_at = claim[CLAIM_ESTIMATE], claim[CLAIM_SPENT], account[ACCOUNT_STARTS_AT]
  local more = (kind == 'ended' and math.max(estimate, spent) or math.min(total, LARGEST_AMOUNT)) - spent
  if not was_ended or claim[CLAIM_PERIOD] ~= starts_at then
    more = math.max(more, 0)
  end
  local before = was_ended and 0 or math.max(estimate - spent, 0)
  local after = (was_ended or kind ~= 'renewed') and 0 or math.max(estimate - spent - more, 0)
  account[ACCOUNT_SPENT] = account[ACCOUNT_SPENT] + more
  account[ACCOUNT_RESERVED] = account[ACCOUNT_RESERVED] - before + after
  if rules.ceiling then
    budgets.tell(account, rules)
  end
  if kind ~= 'renewed' and account[ACCOUNT_IS_WAITED_FOR] == 1 then
    account[ACCOUNT_IS_WAITED_FOR] = 0
    budgets.wake(claim[CLAIM_BUDGET])
  end
  budgets.change(account)
  if more ~= 0 then
    budgets.add_spend(claim, starts_at, more)
  end
  claim[CLAIM_SPENT], claim[CLAIM_PERIOD] = spent + more, starts_at
  if kind == 'ended' then
    claim[CLAIM_ENDED_AT] = NOW
    sorted_set('$budget_claims_ended'):add(NOW, name)
  elseif was_ended then
    sorted_set('$budget_claims_ended'):remove(name)
  end
  hset('$budget_claims', name, kind ~= 'settled' and pack(claim))
end
