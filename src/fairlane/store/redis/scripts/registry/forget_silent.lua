-- uses: liveness
-- Forget workers without a heartbeat for some time.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how long.
-- Reply: their names.
local beats, silent = call('HGETALL', PREFIX .. '$heartbeats'), {}
for i = 1, #beats, 2 do
  if NOW - unpack_one(beats[i + 1])[BEAT_AT] >= tonumber(ARGV[2]) then
    silent[#silent + 1] = beats[i]
    remove_worker(beats[i])
  end
end
commit()
return silent
