-- uses:
-- Slots of schedules. A slot is a field of one hash, `schedule`, a zero byte and 16 digits of the instant.

-- Replace a slot, given its place among those that are pending, and when it ended ('' while it is pending).
local function put_slot(field, packed, place, ended_at)
  hset('$schedule_slots', field, packed)
  zadd('$schedule_slots_named', 0, field)
  zrem('$schedule_slots_pending', field)
  zrem('$schedule_slots_ended', field)
  if ended_at == '' then
    zadd('$schedule_slots_pending', place, field)
  else
    zadd('$schedule_slots_ended', ended_at, field)
  end
end
