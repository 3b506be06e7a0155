-- uses: claims/claim
-- Claim jobs of some queues, fairly across tenants (S35). One script is one atomic step of at most
-- MAX_JOBS_PER_SCRIPT jobs.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the request, msgpack; [3] the continuation of the script before, or ''.
-- Reply: see `claim_step`.
local request = unpack_one(ARGV[2])
return claim_step(request, ARGV[3] == '' and new_continuation() or unpack_one(ARGV[3]), MAX_JOBS_PER_SCRIPT)
