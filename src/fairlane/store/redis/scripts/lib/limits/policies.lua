-- uses:
-- The rules in force for a subject, layered as in the model: a living override above what was declared; a tenant
-- without a declaration has the rules of every tenant ("tenant *"). Python has worked the values out
-- (policies/encoding.py): strides instead of weights, intervals instead of rates. Reads the hash `rules`, each
-- subject once per script, and the sorted set `policies_named`.

local policies, effective_rules = {}, {} -- by subject

local function load_policies(subjects)
  local unknown = {}
  for _, subject in ipairs(subjects) do
    if policies[subject] == nil then
      policies[subject] = false
      unknown[#unknown + 1] = subject
    end
  end
  local found = hmget('$rules', unknown)
  for i, subject in ipairs(unknown) do
    policies[subject] = found[i] and unpack_one(found[i]) or false
  end
end

local function policy_of(subject)
  if policies[subject] == nil then
    load_policies({subject})
  end
  return policies[subject] or EMPTY
end

local function is_in_force(ends) -- 0: without end
  return ends == 0 or NOW < ends
end

-- Return rules with the override of a policy on top, if that is in force.
local function with_override(rules, policy)
  if not policy.override or not is_in_force(policy.override_until) then
    return rules
  end
  local values = {}
  for name, value in pairs(rules) do
    values[name] = value
  end
  for name, value in pairs(policy.override) do
    if name == 'queue_limits' then
      local limits = {}
      for queue, one in pairs(rules.limits or EMPTY) do
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
  local found = effective_rules[subject]
  if not found then
    local policy = policy_of(subject)
    local rules = policy.declared or EMPTY
    if not policy.declared and subject ~= EVERYONE and subject:sub(1, 7) == 'tenant ' then
      rules = rules_of(EVERYONE)
    end
    found = with_override(rules, policy)
    effective_rules[subject] = found
  end
  return found
end

-- Most installations have no policy of a single tenant: then nothing is looked up for each tenant.
local has_tenant_policies

local function any_tenant_policy()
  if has_tenant_policies == nil then
    local named = call('ZRANGE', PREFIX .. '$policies_named', '[tenant\0', '(tenant\1', 'BYLEX', 'LIMIT', 0, 2)
    has_tenant_policies = #named > (named[1] == 'tenant\0*' and 1 or 0)
  end
  return has_tenant_policies
end

local function tenant_rules(tenant_queue)
  local subject = any_tenant_policy() and 'tenant ' .. tenant_queue.tenant
  return rules_of(subject and policy_of(subject) ~= EMPTY and subject or EVERYONE)
end

-- Look up limits and stride once per script: for a tenant queue or, where no tenant has a policy of its own, for its
-- whole queue.
local function resolve_limits(tenant_queue)
  local holder = any_tenant_policy() and tenant_queue or tenant_queue.queue
  local queue = tenant_queue.queue.name
  local own, everyone = tenant_rules(tenant_queue), rules_of(EVERYONE).limits
  holder.stride = own.stride or STRIDE
  holder.limits = own.limits and (own.limits[queue] or own.limits['*'])
    or everyone and (everyone[queue] or everyone['*'])
    or rules_of(tenant_queue.queue.subject).limits
    or EMPTY
  return holder
end

local function limits_of(tenant_queue)
  return tenant_queue.limits or tenant_queue.queue.limits or resolve_limits(tenant_queue).limits
end

local function stride_of(tenant_queue)
  return tenant_queue.stride or tenant_queue.queue.stride or resolve_limits(tenant_queue).stride
end

-- Return the earlier of an instant (0: never) and the first end of an override of these subjects, when other rules
-- hold.
local function or_override_end(instant, subjects)
  for _, subject in ipairs(subjects) do
    local policy = policy_of(subject)
    local ends = policy.override and policy.override_until or 0
    if ends > NOW and (instant == 0 or ends < instant) then
      instant = ends
    end
  end
  return instant
end
