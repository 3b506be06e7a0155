-- uses:
-- Set the purpose of the store, for good, if it holds no job.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the purpose.
-- Reply: the purpose before or '', and whether the store has the purpose asked for.
local before = hget('$meta', 'purpose') or ''
local is_free = before == '' and call('HLEN', PREFIX .. '$heads') == 0
if is_free then
  hset('$meta', 'purpose', ARGV[2])
  commit()
end
return {before, (is_free or before == ARGV[2]) and 1 or 0}
