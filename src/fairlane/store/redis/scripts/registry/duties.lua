-- uses:
-- Return who leads some duties, and what was reported of them.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the name of the lead.
-- Reply: the instant; the worker and until when it leads, '' and 0 if nobody ever did; the reports, or false.
local stored = hget('$leads', ARGV[2])
local lead = stored and unpack_one(stored) or {'', 0}
return {NOW, lead[LEAD_WORKER], lead[LEAD_UNTIL], hget('$duty_reports', ARGV[2])}
