-- uses:
-- Policies: what is kept of some subjects, as it was set. ARGV: the subjects. Gives the instant, then one text each.
local found = {NOW}
for i = 2, #ARGV do
  found[i] = look('$policies', ARGV[i]) or ''
end
return found
