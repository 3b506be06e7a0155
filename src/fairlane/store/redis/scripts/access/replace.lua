-- uses: journal
-- Replace fields of one hash, all of them or none: none if one has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] 'access' or 'attempts'; [3] the entries of the journals, packed; then four of each field: its name, the bytes as
-- they were read ('' for none), the bytes as they are now ('' removes it), when it ends ('' for never).
-- Reply: whether they were replaced.
local is_access = ARGV[2] == 'access'
local key = is_access and '$access' or '$sign_in_attempts'
local ends = is_access and '$access_ends' or '$sign_in_attempts_end'
for i = 4, #ARGV, 4 do
  if (hget(key, ARGV[i]) or '') ~= ARGV[i + 1] then
    return 0
  end
end
for i = 4, #ARGV, 4 do
  local name, is_kept = ARGV[i], ARGV[i + 2] ~= ''
  hset(key, name, is_kept and ARGV[i + 2])
  zrem(ends, name)
  if is_kept and ARGV[i + 3] ~= '' then
    zadd(ends, ARGV[i + 3], name)
  end
  if is_access then
    zrem('$access_named', name)
    if is_kept then
      zadd('$access_named', 0, name)
    end
  end
end
journal.append_all(ARGV[3])
commit()
return 1
