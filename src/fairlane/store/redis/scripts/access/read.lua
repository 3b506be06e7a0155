-- uses:
-- Return the instant, and what is stored of some fields of one hash.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] 'access' or 'attempts'; [3...] the fields.
-- Reply: the instant, then the stored bytes of each ('' if there are none).
local key = ARGV[2] == 'access' and '$access' or '$sign_in_attempts'
local reply = {NOW}
for i = 3, #ARGV do
  reply[i - 1] = hget(key, ARGV[i]) or ''
end
return reply
