-- uses: queues/parking
-- Remove tenant queues that have no job and whose vt is not above the floor of the queue (S41).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many to look at. A pass goes on where the one before stopped, and then begins anew.
local start, limit = hget('$meta', 'tidied') or '', tonumber(ARGV[2])
local names = call('ZRANGE', PREFIX .. '$tenant_queue_names', '(' .. start, '+', 'BYLEX', 'LIMIT', 0, limit)
for _, name in ipairs(names) do
  local queue, tenant = name:match('^(%Z*)%z(.*)$')
  local tenant_queue = tenant_queue_named(load_queue(queue), tenant)
  if is_removable(tenant_queue) then
    mark_changed(tenant_queue)
  end
end
hset('$meta', 'tidied', #names == limit and names[#names])
commit()
