-- uses:
-- Publish: let a staged batch in, as one. From now on it comes before everything else. ARGV: its name, the number of its
-- parts, options. 0: a part of it was staged too long ago.
local name, count = ARGV[2], tonumber(ARGV[3])
local parts = {}
for number = 1, count do
  parts[number] = P .. '$staged' .. name .. '\0' .. number
end
if call('EXISTS', unpack(parts)) < count then -- those that are there expire
  return 0
end
for _, part in ipairs(parts) do
  call('PERSIST', part)
end
local batch = {
  name = name, now = NOW, count = count, at = 1, seen = 0, options = unpack_one(ARGV[4]),
  made = '', refused = {}, repeats = {}, over = {}, linked = {},
}
call('SET', P .. '$batch', pack(batch))
return 1
