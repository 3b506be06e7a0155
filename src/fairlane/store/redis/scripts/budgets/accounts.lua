-- uses: limits/budgets
-- Return accounts of a budget as they are in the present period, by tenant.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the budget; [3] where to begin ('-', or '(' and the tenant before); [4] '=' and the only tenant, or ''; [5] how
-- many.
-- Reply: the instant, then tenant and account, msgpack, of each.
local tenants = {ARGV[4]:sub(2)}
if ARGV[4] == '' then
  tenants = call('ZRANGE', PREFIX .. '$budget_tenants' .. ARGV[2], ARGV[3], '+', 'BYLEX', 'LIMIT', 0, ARGV[5])
end
local found = {NOW}
for _, tenant in ipairs(tenants) do
  if hget('$budget_accounts' .. ARGV[2], tenant) then
    found[#found + 1] = tenant
    found[#found + 1] = pack({unpack(budgets.account(ARGV[2], tenant), 1, ACCOUNT_IS_WAITED_FOR)})
  end
end
return found
