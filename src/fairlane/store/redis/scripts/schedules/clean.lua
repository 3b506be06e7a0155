-- uses:
-- Delete slots that ended until an instant.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how long slots are kept; [3] how many at most.
-- Reply: how many.
local old = call('ZRANGEBYSCORE', PREFIX .. '$schedule_slots_ended', '-inf', NOW - ARGV[2], 'LIMIT', 0, ARGV[3])
for _, field in ipairs(old) do
  hset('$schedule_slots', field, false)
  zrem('$schedule_slots_named', field)
  zrem('$schedule_slots_ended', field)
end
commit()
return #old
