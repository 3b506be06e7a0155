-- uses:
-- Return what some keys hold: type, entries, bytes (estimated from five entries), milliseconds to live.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2...] the keys behind the prefix.
-- Reply: four values for each key that is there, with its position before them.
local found = {}
local sizes = {hash = 'HLEN', zset = 'ZCARD', set = 'SCARD', list = 'LLEN', stream = 'XLEN', string = 'STRLEN'}
for i = 2, #ARGV do
  local key = PREFIX .. ARGV[i]
  local kind = call('TYPE', key).ok
  if sizes[kind] then
    found[#found + 1] = i - 1
    found[#found + 1] = kind
    found[#found + 1] = call(sizes[kind], key)
    found[#found + 1] = call('MEMORY', 'USAGE', key) or 0
    found[#found + 1] = call('PTTL', key)
  end
end
return found
