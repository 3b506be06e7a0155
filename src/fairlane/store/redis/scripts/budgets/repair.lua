-- uses: jobs/state_changes claims/spending journal
-- Compare what the accounts of a budget reserve with the claims that run under them, and restore it (S125).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the budget; [3] '=' and the only account, or ''; [4] '1' to restore; [5] how many claims at most, of all budgets, as
-- they are in one hash; [6] the entry of the audit, packed.
-- Reply: how many claims run, or -1 if there are too many; then four for each flaw: account, what, stored, right.
local budget, only, limit = ARGV[2], ARGV[3], tonumber(ARGV[5])
if call('HLEN', PREFIX .. '$budget_claims') > limit then
  return {-1}
end
local right, behind, stored, left, running, flaws = {}, {}, {}, {}, 0, {}

local function is_asked(account)
  return only == '' or only == '=' .. account
end

local function note(account, what, is, fits)
  for _, value in ipairs({account, what, is, fits}) do
    flaws[#flaws + 1] = value
  end
end

-- Read the claims: what those hold whose jobs run, by account, and which are left behind.
local function read_claims()
  local all, ids, held = call('HGETALL', PREFIX .. '$budget_claims'), {}, {}
  for i = 1, #all, 2 do
    local claim = unpack_one(all[i + 1])
    if claim[CLAIM_BUDGET] == budget and claim[CLAIM_ENDED_AT] == 0 and is_asked(claim[CLAIM_ACCOUNT]) then
      ids[#ids + 1] = all[i]:sub(1, 16)
      held[#held + 1] = {all[i]:sub(1, 16), (struct.unpack('>i8', all[i], 17)), claim}
    end
  end
  load_heads(ids)
  for _, one in ipairs(held) do
    local head, claim = heads[one[1]], one[3]
    local account = claim[CLAIM_ACCOUNT]
    if head and head[STATE] == RUNNING and head[FENCE] == one[2] then
      running = running + 1
      right[account] = (right[account] or 0) + math.max(claim[CLAIM_ESTIMATE] - claim[CLAIM_SPENT], 0)
    else
      left[#left + 1], behind[account] = one, (behind[account] or 0) + 1
    end
  end
end

-- The accounts for whose room strands wait that nobody has woken yet: a group that was woken has a new generation.
local function waiting_accounts()
  local found, rules = {}, rules_of('budget ' .. budget)
  for _, name in ipairs(call('HKEYS', PREFIX .. '$queues')) do
    local queue = load_queue(name)
    local set = '$parked_groups' .. name .. '\0b' .. budget .. '\0' .. (queue.generations['b' .. budget] or 0)
    for _, member in ipairs(call('ZRANGE', PREFIX .. set, 0, rules.per_tenant and limit or 0)) do
      found[rules.per_tenant and parse_park_member(member) or ''] = true
    end
  end
  return found
end

local function compare()
  read_claims()
  local kept = call('HGETALL', PREFIX .. '$budget_accounts' .. budget)
  for i = 1, #kept, 2 do
    if is_asked(kept[i]) then
      stored[kept[i]] = unpack_one(kept[i + 1])
      right[kept[i]] = right[kept[i]] or 0
    end
  end
  for account, amount in pairs(right) do
    local is = stored[account] and stored[account][ACCOUNT_RESERVED] or 0
    if is ~= amount then
      note(account, 'reserved', is, amount)
    end
  end
  for account, count in pairs(behind) do
    note(account, 'claims', count, 0)
  end
  for account in pairs(waiting_accounts()) do
    if is_asked(account) and not (stored[account] and stored[account][ACCOUNT_IS_WAITED_FOR] == 1) then
      note(account, 'waiting', 0, 1)
    end
  end
end

-- Count what is left behind as ended by somebody else (S113), make the reservations anew, and wake who waits.
local function restore()
  for _, one in ipairs(left) do
    budgets.report(one[1], one[2], 'ended', 0, '')
  end
  for i = 1, #flaws, 4 do
    local account = budgets.account(budget, flaws[i])
    account[ACCOUNT_RESERVED], account[ACCOUNT_IS_WAITED_FOR] = right[flaws[i]] or 0, 0
    budgets.change(account)
  end
  budgets.wake(budget)
  journal.append_all(ARGV[6])
  commit()
end

compare()
if ARGV[4] == '1' and #flaws > 0 then
  restore()
end
return {running, unpack(flaws)}
