-- uses: liveness
-- Record a heartbeat of a worker.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker; [3] its state; [4] running; [5] settled; [6] failed; [7] the longest silence between two
-- heartbeats; [8] resident bytes; [9] processors kept busy; -1 where the system does not say.
-- Reply: 1, or 0 if the worker is not registered.
local worker = ARGV[2]
local known = hget('$heartbeats', worker)
if not known then
  return 0
end
local started_at, running, settled, failed = unpack_one(known)[BEAT_STARTED_AT], ARGV[4], ARGV[5], ARGV[6]
hset('$heartbeats', worker, pack({ARGV[3], started_at, NOW, tonumber(running), tonumber(settled), tonumber(failed),
  tonumber(ARGV[8]), tonumber(ARGV[9])}))
record_heartbeat(unpack_one(hget('$workers_tasks', worker)), tonumber(ARGV[7]))
commit()
return 1
