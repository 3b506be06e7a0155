-- uses: limits/rate_limit queues/tenant_queue_record
-- Return how far the rates of some subjects are used.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2...] pairs: of a tenant the queue and its name, of any other '' and the subject.
-- Reply: the instant, then for each the instant up to which starts are used up, and the rate that computed it.
local found = {NOW}
for i = 2, #ARGV, 2 do
  local state
  if ARGV[i] == '' then
    state = rate_state_of(ARGV[i + 1])
  else
    local stored = hget('$tenant_queues' .. ARGV[i], ARGV[i + 1])
    state = stored and read_tenant_queue(stored).rate_state or {0, ''}
  end
  found[#found + 1] = {state[NEXT_ALLOWED_AT], state[RATE_ID]}
end
return found
