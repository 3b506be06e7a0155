-- uses: dead/reviews
-- Get jobs by id.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the ids, 16 bytes each.
-- Reply: the instant; then lists of heads, bodies, attempts, results and reviews.
local ids = split_ids(ARGV[2])
local found = hmget('$heads', ids)
return {
  NOW, found, hmget('$bodies', ids), hmget('$attempts', ids), hmget('$results', ids), reviews_of(ids, found),
}
