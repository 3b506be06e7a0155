-- uses: rules records lines strands turns parking
-- Policy: write what holds for a subject, unless it changed since it was read, and mark what it may have held
-- (S54). ARGV: kind, name, the policy as it was read ('' if there was none), as it is now, the same as scripts read
-- it, 'mark' or ''. A policy that says nothing is '', and is forgotten. Grows with the number of queues, not with who waits in them. Says whether it was done.
local kind, name = ARGV[2], ARGV[3]
local subject = kind .. ' ' .. name
if (look('$policies', subject) or '') ~= ARGV[4] then
  return 0
end
local is_any = ARGV[5] ~= ''
put('$policies', subject, is_any and ARGV[5])
put('$rules', subject, is_any and ARGV[6])
if is_any then
  sorted('$policies_named'):add(0, kind .. '\0' .. name)
else
  sorted('$policies_named'):remove(kind .. '\0' .. name)
end

-- Close a group: claims let time wake all that is in it now, and what is parked from now on is in the next.
local function mark(queue, group)
  local generation = queue.groups[group] or 0
  if group_line(queue, group, generation):first() then
    queue.marks[#queue.marks + 1] = {group, generation, NOW}
    queue.groups[group] = generation + 1
    hint(queue.name)
  end
end

local function mark_tenant(queue, tenant)
  local turn = turn_named(queue, tenant)
  if turn.parked then
    wake_from(turn, '', NOW)
    hint(queue.name)
  end
end

if ARGV[7] == 'mark' then
  if kind == 'queue' then
    mark(queue_named(name), 't')
    hint(name)
  else
    for _, other in ipairs(call('HKEYS', P .. '$queues')) do
      local queue = queue_named(other)
      if subject == EVERYONE then
        mark(queue, 't')
      elseif kind == 'tenant' then
        mark_tenant(queue, name)
      else
        mark(queue, (kind == 'task' and 's' or 'r') .. name)
      end
    end
    if kind == 'gate' then
      hint_at_gate(name)
    end
  end
end
commit()
return 1
