-- uses:
-- Remove a batch that is in the archive, all of it in one step (S105). An open one stays.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] its number.
-- Reply: whether it was there.
local closed_at = hget('$archive_batches', ARGV[2])
if ARGV[2] == 'last' or not closed_at or closed_at == '' then
  return 0
end
hset('$archive_batches', ARGV[2], false)
commit()
call('UNLINK', PREFIX .. '$archived' .. ARGV[2])
return 1
