-- uses:
-- Publish a staged batch: from now on it goes before everything else (base/buffer.lua).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] its name, [3] the number of its parts, [4] options.
-- Reply: 1, or 0 if a part has expired, and nothing was done.
local name, count = ARGV[2], tonumber(ARGV[3])
local parts = {}
for number = 1, count do
  parts[number] = PREFIX .. '$staged' .. name .. '\0' .. number
end
if call('EXISTS', unpack(parts)) < count then -- those that are there expire
  return 0
end
for _, part in ipairs(parts) do
  call('PERSIST', part)
end
local batch = {
  name = name, now = NOW, count = count, at = 1, seen = 0, options = unpack_one(ARGV[4]),
  made = '', refused = {}, repeats = {}, over = {}, linked = {}, warnings = {}, created = {},
}
call('SET', PREFIX .. '$batch', pack(batch))
return 1
