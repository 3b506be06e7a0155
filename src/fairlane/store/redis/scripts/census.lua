-- uses:
-- Census: what the store counts as a whole, or of one tenant. ARGV: the tenant or ''. Gives the numbers of all jobs and
-- of the finished ones by state, of idempotency and of de-duplication keys, the gates and their use, the first lease.
local tenant, finished, keys, dedup = ARGV[2], {}, nil, nil
for state = 1, STATES do
  finished[state] = call('ZCARD', P .. '$finished' .. state)
end
if tenant == '' then
  keys, dedup = call('HLEN', P .. '$keys'), call('HLEN', P .. '$dedup')
else
  local first, last = '[' .. tenant .. '\0', '(' .. tenant .. '\1'
  keys, dedup = call('ZLEXCOUNT', P .. '$keys_named', first, last), call('ZLEXCOUNT', P .. '$dedup_named', first, last)
end
return {call('HLEN', P .. '$heads'), finished, keys, dedup, call('HGETALL', P .. '$gates')}
