-- uses:
-- Stage: keep a part of a batch, which nobody sees, for a while. ARGV: the batch, the number of the part, its items, its
-- ids, a body each.
local key = P .. '$staged' .. ARGV[2] .. '\0' .. ARGV[3]
call('RPUSH', key, unpack(ARGV, 4))
call('PEXPIRE', key, STAGED_LASTS)
