-- uses: registry
-- Heartbeat: note that a worker lives. ARGV: worker, state, running, settled, failed, the longest silence between two
-- heartbeats. 0: it is not known.
local worker = ARGV[2]
local known = look('$beats', worker)
if not known then
  return 0
end
put('$beats', worker, pack({ARGV[3], unpack_one(known)[2], NOW, tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])}))
beat(unpack_one(look('$workers_tasks', worker)), tonumber(ARGV[7]))
commit()
return 1
