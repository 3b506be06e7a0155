-- uses:
-- Close the oldest batch if it is open (S105).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- Reply: its number and when it was closed; 0 and 0 if there is none.
local oldest
for _, name in ipairs(call('HKEYS', PREFIX .. '$archive_batches')) do
  local number = tonumber(name)
  if number and (not oldest or number < oldest) then
    oldest = number
  end
end
if not oldest then
  return {0, 0}
end
local name = string.format('%d', oldest)
local closed_at = hget('$archive_batches', name)
if closed_at == '' then
  closed_at = string.format('%d', NOW)
  hset('$archive_batches', name, closed_at)
  commit()
end
return {oldest, tonumber(closed_at)}
