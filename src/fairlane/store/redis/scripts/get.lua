-- uses:
-- Get: jobs as they are kept, by their ids. ARGV: the ids (16 bytes each). Gives the instant, then heads, bodies,
-- attempts and results.
local ids = {}
for i = 1, #ARGV[2] / 16 do
  ids[i] = ARGV[2]:sub(i * 16 - 15, i * 16)
end
return {NOW, read_fields('$heads', ids), read_fields('$bodies', ids), read_fields('$attempts', ids), read_fields('$results', ids)}
