-- uses:
-- Return entries without a number, oldest first, and the end of the journal.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the journal; [3] the place to go on after ('' for the start); [4] how many.
-- Reply: the instant; revision, first and last number (0: none), memory; then place and bytes of each entry in turn.
local name, after, limit = ARGV[2], ARGV[3] == '' and '-' or '(' .. ARGV[3], tonumber(ARGV[4])
local oldest = call('XRANGE', PREFIX .. '$entries' .. name, '-', '+', 'COUNT', 1)[1]
local ends = hmget('$journal_ends' .. name, {'revision', 'last', 'memory'})
local found = {}
for i, one in ipairs(limit > 0 and call('XRANGE', PREFIX .. '$pending_entries' .. name, after, '+', 'COUNT', limit) or EMPTY) do
  found[2 * i - 1], found[2 * i] = one[1], one[2][2]
end
return {
  NOW, tonumber(ends[1] or 0), oldest and tonumber(oldest[1]:match('^%d+')) or 0, tonumber(ends[2] or 0), ends[3] or '',
  found,
}
