-- uses:
-- Remove a tenant's own account of a budget, unless a running job has reserved something of it (S52).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the budget; [3] the tenant.
local key, tenant = '$budget_accounts' .. ARGV[2], ARGV[3]
local stored = hget(key, tenant)
if stored and unpack_one(stored)[ACCOUNT_RESERVED] == 0 then
  hset(key, tenant, false)
  sorted_set('$budget_tenants' .. ARGV[2]):remove(tenant)
  commit()
end
