-- uses:
-- Stage: keep parts of a batch, which nobody sees, for a while. ARGV: the batch, the number of the first part, then for
-- each part how many values it has, and those: its items, its ids, a body each.
local number, at = tonumber(ARGV[3]), 4
while ARGV[at] do
  local key, last = P .. '$staged' .. ARGV[2] .. '\0' .. number, at + tonumber(ARGV[at])
  call('RPUSH', key, unpack(ARGV, at + 1, last))
  call('PEXPIRE', key, STAGED_LASTS)
  number, at = number + 1, last + 1
end
