-- uses:
-- Publish: let a staged batch in, as one. From now on it comes before everything else. ARGV: its name, the number of its
-- parts, options. 0: a part of it was staged too long ago.
local name, count = ARGV[2], tonumber(ARGV[3])
for number = 1, count do
  if call('PERSIST', P .. '$staged' .. name .. '\0' .. number) == 0 then
    return 0
  end
end
local batch = {
  name = name, now = NOW, count = count, at = 1, seen = 0, options = unpack_one(ARGV[4]),
  made = '', refused = {}, repeats = {}, over = {},
}
call('SET', P .. '$batch', pack(batch))
return 1
