-- uses: journal schedule_slots
-- Replace slots, each alone: not if it has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: six of each slot: the field, the bytes as they were read, as they are now, its place among the pending ones, when it
-- ended ('' while it is pending), the entries of the journals, packed.
-- Reply: for each slot whether it was replaced.
local reply = {}
for i = 2, #ARGV, 6 do
  local is_as_read = (hget('$schedule_slots', ARGV[i]) or '') == ARGV[i + 1]
  if is_as_read then
    put_slot(ARGV[i], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
    journal.append_all(ARGV[i + 5])
  end
  reply[#reply + 1] = is_as_read and 1 or 0
end
commit()
return reply
