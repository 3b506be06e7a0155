-- uses:
-- Lead: give the lead to whoever asks first, keep it for whoever asks again in time. ARGV: name, worker, lease.
local stored = look('$leads', ARGV[2])
local lead = stored and unpack_one(stored) or {'', 0}
if lead[1] == ARGV[3] or lead[2] <= NOW then
  lead = {ARGV[3], NOW + ARGV[4]}
  put('$leads', ARGV[2], pack(lead))
  commit()
end
return lead
