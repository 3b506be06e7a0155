-- uses:
-- Return what the store counts as a whole, or of one tenant.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the tenant or ''.
-- Reply: the number of all jobs, of finished jobs by state, of idempotency keys, of de-duplication keys; the used
-- slots by gate.
local tenant, finished, keys, dedup = ARGV[2], {}, nil, nil
for state = 1, STATES do
  finished[state] = call('ZCARD', PREFIX .. '$finished' .. state)
end
if tenant == '' then
  keys, dedup = call('HLEN', PREFIX .. '$keys'), call('HLEN', PREFIX .. '$dedup')
else
  local first, last = '[' .. tenant .. '\0', '(' .. tenant .. '\1'
  keys = call('ZLEXCOUNT', PREFIX .. '$keys_named', first, last)
  dedup = call('ZLEXCOUNT', PREFIX .. '$dedup_named', first, last)
end
return {call('HLEN', PREFIX .. '$heads'), finished, keys, dedup, call('HGETALL', PREFIX .. '$gate_slots')}
