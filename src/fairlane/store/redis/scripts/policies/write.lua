-- uses: journal queues/parking
-- Write the policy of a subject, unless it has changed since it was read, and let what it held be unparked (S54): a
-- pause, a close, an override, declared rules. Takes time by the number of queues, not by the number of those who
-- wait in them.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] kind; [3] name; [4] the policy as it was read ('' for none); [5] as it is now ('' deletes it); [6] the
-- same as rules for scripts; [7] 'mark' to unpark what it held, or ''; [8] the entries of the journals, packed.
-- Reply: whether it was written.
local kind, name = ARGV[2], ARGV[3]
local subject = kind .. ' ' .. name
if (hget('$policies', subject) or '') ~= ARGV[4] then
  return 0
end
local is_any = ARGV[5] ~= ''
hset('$policies', subject, is_any and ARGV[5])
hset('$rules', subject, is_any and ARGV[6])
if is_any then
  sorted_set('$policies_named'):add(0, kind .. '\0' .. name)
else
  sorted_set('$policies_named'):remove(kind .. '\0' .. name)
end

local function unpark_tenant(queue, tenant)
  local tenant_queue = tenant_queue_named(queue, tenant)
  if tenant_queue.parked then
    unpark_at(tenant_queue, '', NOW)
    hint_queue(queue.name)
  end
end

if ARGV[7] == 'mark' and kind ~= 'breaker' then -- rules of a breaker hold nobody: its state does
  if kind == 'queue' then
    mark_group(load_queue(name), 't')
    hint_queue(name)
  else
    for _, other in ipairs(call('HKEYS', PREFIX .. '$queues')) do
      local queue = load_queue(other)
      if subject == EVERYONE then
        mark_group(queue, 't')
      elseif kind == 'tenant' then
        unpark_tenant(queue, name)
      else
        mark_group(queue, (kind == 'task' and 's' or kind == 'budget' and 'b' or 'r') .. name)
      end
    end
    if kind == 'gate' then
      hint_gate_queues(name)
    end
  end
end
journal.append_all(ARGV[8])
commit()
return 1
