-- uses:
-- Registry: everything that is known of workers, tasks and leads, as it is kept. ARGV: the hashes. Gives the instant,
-- then fields and values of each.
local found = {NOW}
for i = 2, #ARGV do
  found[i] = call('HGETALL', P .. ARGV[i])
end
return found
