-- uses: registry
-- Clean: forget workers not heard of for this long; name them. ARGV: how long.
local beats, silent = call('HGETALL', P .. '$beats'), {}
for i = 1, #beats, 2 do
  if NOW - unpack_one(beats[i + 1])[3] >= tonumber(ARGV[2]) then
    silent[#silent + 1] = beats[i]
    remove_worker(beats[i])
  end
end
commit()
return silent
