-- uses: rules records lines strands turns parking blocks homes handout
-- Claim: hand out jobs of some queues, fairly across tenants (S35). ARGV: the request, the carry of the script
-- before. Keys: i: j: w: p: g: d: s: t: l x h b a q. One script is one atomic step.
local request = unpack_one(ARGV[2])
return claim(request, ARGV[3] == '' and begin_claim() or unpack_one(ARGV[3]), CLAIM_MOST)
