-- uses: records
-- Remove idempotency keys that nobody needs: those of jobs that are gone and settled long enough (S52), or all of a
-- tenant whose jobs have ended. ARGV: the last instant of settling ('' for all of the tenant), the tenant or '', how
-- many to pass over, how many to look at. Gives how many were looked at and how many were removed.
local settled, tenant, start, most = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local names
if settled ~= '' then
  names = call('ZRANGEBYSCORE', P .. '$keys_ended', '-inf', settled, 'LIMIT', start, most)
else
  names = call('ZRANGE', P .. '$keys_named', '[' .. tenant .. '\0', '(' .. tenant .. '\1', 'BYLEX', 'LIMIT', start, most)
end
local stored, removed = read_fields('$keys', names), 0
for i, name in ipairs(names) do
  local head = stored[i] and call('HGET', P .. '$heads', unpack_one(stored[i])[1])
  local is_free = not head or (settled == '' and read_head(head)[SETTLED_AT] > 0)
  if is_free and (tenant == '' or name:sub(1, #tenant + 1) == tenant .. '\0') then
    removed = removed + 1
    put('$keys', name, false)
    sorted('$keys_named'):remove(name)
    sorted('$keys_ended'):remove(name)
  end
end
commit()
return {#names, removed}
