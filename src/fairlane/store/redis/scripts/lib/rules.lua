-- What is allowed, laid over each other as `model.layers` does: a living override above what is declared, an
-- undeclared tenant as everyone ("tenant *"). The values were worked out in Python when they were set: strides
-- of weights, intervals and paces of rates. Reads the hash "rules" by subject.

local NOTHING = {}
local policies, in_force = {}, {}

local function know_policies(subjects)
  local unknown = {}
  for _, subject in ipairs(subjects) do
    if policies[subject] == nil then
      policies[subject] = false
      unknown[#unknown + 1] = subject
    end
  end
  local found = read_fields('$rules', unknown)
  for i, subject in ipairs(unknown) do
    policies[subject] = found[i] and unpack_one(found[i]) or false
  end
end

local function policy_of(subject)
  if policies[subject] == nil then
    know_policies({subject})
  end
  return policies[subject] or NOTHING
end

local function is_living(ends) -- 0: it has no end
  return ends == 0 or NOW < ends
end

local function overlay(beneath, policy)
  if not policy.override or not is_living(policy.override_until) then
    return beneath
  end
  local values = {}
  for name, value in pairs(beneath) do
    values[name] = value
  end
  for name, value in pairs(policy.override) do
    if name == 'queue_limits' then
      local limits = {}
      for queue, one in pairs(beneath.limits or NOTHING) do
        limits[queue] = one
      end
      for queue, one in pairs(value) do
        limits[queue] = one
      end
      values.limits = limits
    elseif value == false then
      values[name] = nil
    else
      values[name] = value
    end
  end
  return values
end

local function rules_of(subject)
  local found = in_force[subject]
  if not found then
    local policy = policy_of(subject)
    local beneath = policy.declared or NOTHING
    if not policy.declared and subject ~= EVERYONE and subject:sub(1, 7) == 'tenant ' then
      beneath = rules_of(EVERYONE)
    end
    found = overlay(beneath, policy)
    in_force[subject] = found
  end
  return found
end

-- Of most tenants nothing is said, and in most installations of none: then nothing has to be looked up for each.
local has_special

local function is_any_special()
  if has_special == nil then
    local named = call('ZRANGE', P .. '$policies_named', '[tenant\0', '(tenant\1', 'BYLEX', 'LIMIT', 0, 2)
    has_special = #named > (named[1] == 'tenant\0*' and 1 or 0)
  end
  return has_special
end

local function tenant_rules(turn)
  local subject = is_any_special() and 'tenant ' .. turn.tenant
  return rules_of(subject and policy_of(subject) ~= NOTHING and subject or EVERYONE)
end

-- What is looked up once holds for the whole script: for a turn or, where no tenant is special, for its whole queue.
local function look_up(turn)
  local holder, queue = is_any_special() and turn or turn.queue, turn.queue.name
  local own, everyone = tenant_rules(turn), rules_of(EVERYONE).limits
  holder.stride = own.stride or STRIDE
  holder.limits = own.limits and (own.limits[queue] or own.limits['*'])
    or everyone and (everyone[queue] or everyone['*'])
    or rules_of(turn.queue.subject).limits
    or NOTHING
  return holder
end

local function limits_of(turn)
  return turn.limits or turn.queue.limits or look_up(turn).limits
end

local function stride_of(turn)
  return turn.stride or turn.queue.stride or look_up(turn).stride
end

-- Give the earlier of an instant (0: never) and the first end of a living override of these subjects.
local function earlier_end(instant, subjects)
  for _, subject in ipairs(subjects) do
    local policy = policy_of(subject)
    local ends = policy.override and policy.override_until or 0
    if ends > NOW and (instant == 0 or ends < instant) then
      instant = ends
    end
  end
  return instant
end

-- ── rates: the theoretical arrival of the next start (GCRA), kept with the pace it was counted at ──────────

local arrivals = {}

local function arrival_of(subject)
  local kept = arrivals[subject]
  if not kept then
    local stored = look('$arrivals', subject)
    kept = stored and unpack_one(stored) or {0, ''}
    arrivals[subject] = kept
  end
  return kept
end

local function free_at(rate, kept)
  local arrival = kept[2] == rate.pace and kept[1] or 0
  return arrival - (rate.burst - 1) * rate.interval
end

local function start(rate, kept)
  local arrival = kept[2] == rate.pace and kept[1] or 0
  kept[1], kept[2] = math.max(arrival, NOW) + rate.interval, rate.pace
end

local function count_against(rate, subject)
  local kept = arrival_of(subject)
  start(rate, kept)
  put('$arrivals', subject, pack(kept))
end

-- ── gates ──────────────────────────────────────────────────────────────────

local function used_at(gate)
  return tonumber(look('$gates', gate) or 0)
end

local function use_gate(gate, change)
  local used = used_at(gate) + change
  put('$gates', gate, used ~= 0 and used)
end

local function room_at(gate) -- nil: there is no limit
  local limit = rules_of('gate ' .. gate).limit
  return limit and math.max(0, limit - used_at(gate))
end
