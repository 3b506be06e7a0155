-- uses:
-- Count what these have spent of a budget in a period with what is beyond the bound, without their names (S52).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the budget; [3] the start of the period; [4] and more: {TASK, TENANT, CREATED_BY} of each.
local key, others = '$budget_spend' .. ARGV[2] .. '\0' .. ARGV[3], pack({OTHERS, OTHERS, OTHERS})
local total = hget(key, others) or 0
for i = 4, #ARGV do
  total = total + (hget(key, ARGV[i]) or 0)
  hset(key, ARGV[i], false)
end
if call('EXISTS', PREFIX .. key) == 1 then
  hset(key, others, string.format('%.0f', total))
  commit()
end
