-- uses: liveness
-- Remove a worker that leaves; the leads it holds end.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker.
remove_worker(ARGV[2])
local leads = call('HGETALL', PREFIX .. '$leads')
for i = 1, #leads, 2 do
  if unpack_one(leads[i + 1])[LEAD_WORKER] == ARGV[2] then
    hset('$leads', leads[i], false)
  end
end
commit()
