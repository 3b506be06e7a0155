-- uses:
-- Return schedules that are due, and pending slots.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many of each at most; [3] how many schedules that are due are left out, the first ones.
-- Reply: the instant, when the next schedule is due that is not among them ('' for never), schedules, slots.
local due = call('ZRANGEBYSCORE', PREFIX .. '$schedules_next', '-inf', NOW, 'LIMIT', ARGV[3], ARGV[2])
local pending = call('ZRANGE', PREFIX .. '$schedule_slots_pending', 0, ARGV[2] - 1)
local earlier = ARGV[3] == '0' and #due or 0
local following = call('ZRANGE', PREFIX .. '$schedules_next', earlier, earlier)[1]
local next_at = following and call('ZSCORE', PREFIX .. '$schedules_next', following) or ''
return {NOW, next_at, hmget('$schedules', due), hmget('$schedule_slots', pending)}
