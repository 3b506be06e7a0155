-- uses:
-- Get: jobs as they are kept, by their ids. ARGV: the ids (16 bytes each). Gives the instant, then heads, bodies,
-- attempts and results.
local ids = read_ids(ARGV[2])
return {NOW, read_fields('$heads', ids), read_fields('$bodies', ids), read_fields('$attempts', ids), read_fields('$results', ids)}
