-- uses:
-- Replace pending entries by numbered ones, unless the journal has changed.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the journal; [3] the revision that the caller has seen; [4] the number of the first entry; [5] the memory of
-- the duty; [6] how many entries are taken; then their places, lowest first, and the numbered entries, packed.
-- Reply: whether it was done; and the last number, if that of the first entry does not follow it, else -1.
local name, revision, number, taken = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[6])
local pending, ends = PREFIX .. '$pending_entries' .. name, hmget('$journal_ends' .. name, {'revision', 'last'})
if tonumber(ends[1] or 0) ~= tonumber(revision) then
  return {0, -1}
end
local last, first_entry, places, is_pending = tonumber(ends[2] or 0), 7 + taken, {}, {}
if #ARGV >= first_entry and number ~= last + 1 then
  return {0, last}
end
-- Mostly all of a range are taken, and one command reads them; what lies beyond others is looked up by itself.
for _, one in ipairs(taken > 0 and call('XRANGE', pending, ARGV[7], ARGV[6 + taken], 'COUNT', taken) or EMPTY) do
  is_pending[one[1]] = true
end
for i = 1, taken do
  local place = ARGV[6 + i]
  if is_pending[place] == nil then
    is_pending[place] = call('XRANGE', pending, place, place)[1] ~= nil
  end
  if not is_pending[place] then -- it is not there, or was named before
    return {0, -1}
  end
  places[i], is_pending[place] = place, false
end
call_in_chunks('XDEL', pending, places)
for i = first_entry, #ARGV do
  last = last + 1
  call('XADD', PREFIX .. '$entries' .. name, ('%d-0'):format(last), '', ARGV[i])
end
hset('$journal_ends' .. name, 'revision', revision + 1)
hset('$journal_ends' .. name, 'last', last)
hset('$journal_ends' .. name, 'memory', ARGV[5])
commit()
return {1, -1}
