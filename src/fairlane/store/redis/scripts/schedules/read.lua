-- uses:
-- Return the instant, and what is stored of some schedules and slots.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many schedules; [3...] their names, then the fields of slots.
-- Reply: the instant, then the stored bytes of each ('' if there are none).
local reply, schedules = {NOW}, tonumber(ARGV[2])
for i = 3, #ARGV do
  reply[i - 1] = hget(i - 2 <= schedules and '$schedules' or '$schedule_slots', ARGV[i]) or ''
end
return reply
