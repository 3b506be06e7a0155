-- uses:
-- Delete records that have expired, and counts of attempts whose time is over.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many of each at most.
-- Reply: how many records, and whether there may be more of either.
local function clean(key, ends)
  local old = call('ZRANGEBYSCORE', PREFIX .. ends, '-inf', NOW, 'LIMIT', 0, ARGV[2])
  for _, name in ipairs(old) do
    hset(key, name, false)
    zrem(ends, name)
    if key == '$access' then
      zrem('$access_named', name)
    end
  end
  return #old
end

local records, counts = clean('$access', '$access_ends'), clean('$sign_in_attempts', '$sign_in_attempts_end')
commit()
return {records, math.max(records, counts) == tonumber(ARGV[2]) and 1 or 0}
