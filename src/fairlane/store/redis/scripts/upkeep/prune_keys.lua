-- uses: jobs/job_head
-- Remove idempotency keys that are no longer needed: of jobs that are gone and settled long ago (S52), or all of a
-- tenant whose jobs have ended.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the last settling to remove ('' for all of the tenant); [3] the tenant or ''; [4] how many to skip; [5]
-- how many to look at.
-- Reply: how many were looked at, how many removed.
local settled, tenant, start, limit = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local names
if settled ~= '' then
  names = call('ZRANGEBYSCORE', PREFIX .. '$keys_ended', '-inf', settled, 'LIMIT', start, limit)
else
  local first, last = '[' .. tenant .. '\0', '(' .. tenant .. '\1'
  names = call('ZRANGE', PREFIX .. '$keys_named', first, last, 'BYLEX', 'LIMIT', start, limit)
end
local stored, removed = hmget('$keys', names), 0
for i, name in ipairs(names) do
  local head = stored[i] and call('HGET', PREFIX .. '$heads', unpack_one(stored[i])[KEY_JOB_ID])
  local is_free = not head or (settled == '' and read_head(head)[SETTLED_AT] > 0)
  if is_free and (tenant == '' or name:sub(1, #tenant + 1) == tenant .. '\0') then
    removed = removed + 1
    hset('$keys', name, false)
    sorted_set('$keys_named'):remove(name)
    sorted_set('$keys_ended'):remove(name)
  end
end
commit()
return {#names, removed}
