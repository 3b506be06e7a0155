-- uses:
-- Get jobs by id.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the ids, 16 bytes each.
-- Reply: the instant; then lists of heads, bodies, attempts and results.
local ids = split_ids(ARGV[2])
return {
  NOW, hmget('$heads', ids), hmget('$bodies', ids), hmget('$attempts', ids), hmget('$results', ids),
}
