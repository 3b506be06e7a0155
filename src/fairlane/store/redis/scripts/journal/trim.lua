-- uses:
-- Delete the oldest numbered entries, unless the journal has changed.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the journal; [3] the revision that the caller has seen; [4] the last number to delete; [5] how many at most;
-- [6] the memory of the duty.
-- Reply: whether it was done; and the last number, if there is no entry with that number yet, else -1.
local name, revision, up_to, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ends = hmget('$journal_ends' .. name, {'revision', 'last'})
local last = tonumber(ends[2] or 0)
if tonumber(ends[1] or 0) ~= revision then
  return {0, -1}
elseif up_to > last then
  return {0, last}
end
local oldest = call('XRANGE', PREFIX .. '$entries' .. name, '-', '+', 'COUNT', 1)[1]
if oldest then
  local kept = math.min(up_to + 1, oldest[1]:match('^%d+') + limit)
  call('XTRIM', PREFIX .. '$entries' .. name, 'MINID', ('%d-0'):format(math.max(kept, 0)))
end
hset('$journal_ends' .. name, 'revision', revision + 1)
hset('$journal_ends' .. name, 'memory', ARGV[6])
commit()
return {1, -1}
