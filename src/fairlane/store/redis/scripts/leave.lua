-- uses: registry
-- Leave: take a worker off the list; leads it holds end. ARGV: worker.
remove_worker(ARGV[2])
local leads = call('HGETALL', P .. '$leads')
for i = 1, #leads, 2 do
  if unpack_one(leads[i + 1])[1] == ARGV[2] then
    put('$leads', leads[i], false)
  end
end
commit()
