-- uses: journal schedule_slots
-- Change schedules and take their slots, each schedule alone: not if it or a slot has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV of each change: the name, its bytes as they were read ('' for none), as they are now ('' removes it), when it must be
-- looked at again ('' for never), the entries of the journals, packed, how many slots; then five of each slot: the field, the
-- bytes as they were read, as they are now, its place among the pending ones, when it ended ('' while it is pending).
-- Reply: for each change whether it was made.
local reply, at = {}, 2

local function is_as_read(first, last)
  if (hget('$schedules', ARGV[at]) or '') ~= ARGV[at + 1] then
    return false
  end
  for i = first, last, 5 do
    if (hget('$schedule_slots', ARGV[i]) or '') ~= ARGV[i + 1] then
      return false
    end
  end
  return true
end

while at <= #ARGV do
  local name, after, next_at = ARGV[at], ARGV[at + 2], ARGV[at + 3]
  local first = at + 6
  local following = first + 5 * tonumber(ARGV[at + 5])
  local is_made = is_as_read(first, following - 1)
  if is_made then
    hset('$schedules', name, after ~= '' and after)
    zrem('$schedules_named', name)
    zrem('$schedules_next', name)
    if after ~= '' then
      zadd('$schedules_named', 0, name)
      if next_at ~= '' then
        zadd('$schedules_next', next_at, name)
      end
    end
    for i = first, following - 1, 5 do
      put_slot(ARGV[i], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
    end
    journal.append_all(ARGV[at + 4])
  end
  reply[#reply + 1] = is_made and 1 or 0
  at = following
end
commit()
return reply
