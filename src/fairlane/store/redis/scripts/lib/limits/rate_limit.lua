-- uses: limits/policies
-- Rate limits (S44), by the generic cell rate algorithm. The state of a rate is {NEXT_ALLOWED_AT, RATE_ID}: the
-- instant from which the next start is allowed without a burst, and the rate it was computed for. Another rate begins
-- anew. Rules have the rate id under the name `pace` (policies/encoding.py). Subjects have their states in the hash
-- `rate_states`, tenants in their tenant queues.

local rate_states = {}

local function rate_state_of(subject)
  local state = rate_states[subject]
  if not state then
    local stored = hget('$rate_states', subject)
    state = stored and unpack_one(stored) or {0, ''}
    rate_states[subject] = state
  end
  return state
end

-- Return the instant from which the rate allows a start, burst included.
local function next_start_at(rate, state)
  local next_allowed_at = state[RATE_ID] == rate.pace and state[NEXT_ALLOWED_AT] or 0
  return next_allowed_at - (rate.burst - 1) * rate.interval
end

local function record_start(rate, state)
  local next_allowed_at = state[RATE_ID] == rate.pace and state[NEXT_ALLOWED_AT] or 0
  state[NEXT_ALLOWED_AT], state[RATE_ID] = math.max(next_allowed_at, NOW) + rate.interval, rate.pace
end

local function count_against_rate(rate, subject)
  local state = rate_state_of(subject)
  record_start(rate, state)
  hset('$rate_states', subject, pack(state))
end

-- Return what holds a start until the rate allows it, or until an override ends and another rate may be in force.
local function rate_block(rate, state, layers)
  local instant = next_start_at(rate, state)
  if instant > NOW then
    return {'rate', layers[1], or_override_end(instant, layers)}
  end
end
