-- uses: walking
-- Tally: count the next jobs of a sorted set that meet filters, in the order of score and id. ARGV: the set, the place to
-- go on from (score and id, exclusive; '' for the start of the set), how many, a score to stop at or '', the states that
-- are wanted, a byte each, a tenant, a queue, a task, a tag, the id of a parent: '' lets everything through. Gives how many
-- members it read and the score and id of the last, the same of those that belong to the tenant, then the groups: queue,
-- state, first word of the reason, jobs, the earliest enqueue.
local key, score, id, stop = P .. ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6])
local states, tenant, queue, task, tag, parent = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local rank = passed(key, true, score, id)
local found = call('ZRANGE', key, rank, rank + ARGV[5] - 1, 'WITHSCORES')
local ids, scores = {}, {}
for i = 1, #found, 2 do
  local at = tonumber(found[i + 1])
  if stop and at > stop then
    break
  end
  ids[#ids + 1], scores[#scores + 1] = found[i], at
end

local heads = read_fields('$heads', ids)
local wanted, fields = {}, {}
local own, last = 0, 0
for i, head in ipairs(heads) do
  local read = head and {struct.unpack(BIRTH_FORM, head)}
  if read and (tenant == '' or read[TENANT] == tenant) then
    own, last = own + 1, i
    local is_wanted = (states == '' or states:find(string.char(read[STATE]), 1, true))
      and (queue == '' or read[QUEUE] == queue) and (task == '' or read[TASK] == task)
    if is_wanted then
      wanted[#wanted + 1], fields[#fields + 1] = ids[i], read
    end
  end
end

-- A body is packed with byte strings, which the server's own reader does not know: these are stepped over here. It has,
-- in this order: payload, four numbers and flags, tags, metadata, who made it, the id of the parent (rows.py).
local function after_bytes(body, at)
  local kind = byte(body, at + 1)
  if kind == 0xc4 then
    return at + 2 + byte(body, at + 2)
  end
  local size, form = kind == 0xc5 and 2 or 4, kind == 0xc5 and '>I2' or '>I4'
  return at + 1 + size + struct.unpack(form, body, at + 2)
end

local function parts_of(body)
  local at, _, _, _, _, tags = cmsgpack.unpack_limit(body, 5, after_bytes(body, 1))
  at = cmsgpack.unpack_limit(body, 1, after_bytes(body, at))
  if at == -1 or byte(body, at + 1) ~= 0xc4 then
    return tags, ''
  end
  return tags, body:sub(at + 3)
end

local function meets(body)
  local tags, above = parts_of(body)
  local has_tag = tag == ''
  for _, one in ipairs(tags) do
    has_tag = has_tag or one == tag
  end
  return has_tag and (parent == '' or above == parent)
end

local bodies = (tag ~= '' or parent ~= '') and read_fields('$bodies', wanted)
local groups, order = {}, {}
for i, read in ipairs(fields) do
  if not bodies or (bodies[i] and meets(bodies[i])) then
    local word = read[BECAUSE]:match('^[^:]*')
    local name = read[QUEUE] .. '\0' .. read[STATE] .. '\0' .. word
    local group = groups[name]
    if not group then
      group = {read[QUEUE], read[STATE], word, 0, read[ENQUEUED_AT]}
      groups[name], order[#order + 1] = group, group
    end
    group[4], group[5] = group[4] + 1, math.min(group[5], read[ENQUEUED_AT])
  end
end
return {#ids, scores[#ids] or 0, ids[#ids] or '', own, scores[last] or 0, ids[last] or '', order}
