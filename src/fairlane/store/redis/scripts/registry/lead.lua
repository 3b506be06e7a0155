-- uses:
-- Give a lead to the worker that asks first; renew it for its holder.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the name of the lead; [3] the worker; [4] the lease; [5] what its holder reports of the
-- duties, or ''.
-- Reply: who leads, and until when.
local stored = hget('$leads', ARGV[2])
local lead = stored and unpack_one(stored) or {'', 0}
if lead[LEAD_WORKER] == ARGV[3] or lead[LEAD_UNTIL] <= NOW then
  lead = {ARGV[3], NOW + ARGV[4]}
  hset('$leads', ARGV[2], pack(lead))
  if ARGV[5] ~= '' then
    hset('$duty_reports', ARGV[2], ARGV[5])
  end
  commit()
end
return lead
