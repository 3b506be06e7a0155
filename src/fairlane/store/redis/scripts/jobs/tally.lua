-- uses: jobs/paging jobs/job_body
-- Count the next jobs of a sorted set that match filters, in the order of score and id. No job leaves the server.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the set; [3], [4] score and id of the position to go on after ('' for the start); [5] how many members to
-- read; [6] the score to stop at or ''; then the filters, '' for all: [7] states, a byte each, [8] tenant, [9] queue,
-- [10] task, [11] tag, [12] id of the parent, [13] who created the job.
-- Reply: how many members were read, score and id of the last; the same of those of the tenant; then the groups:
-- queue, state, first word of the reason, jobs, the earliest enqueue.
local key, score, id, stop = PREFIX .. ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6])
local states, tenant, queue, task = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local tag, parent, created_by = ARGV[11], ARGV[12], ARGV[13]
local rank = rank_after(key, true, score, id)
local found = call('ZRANGE', key, rank, rank + ARGV[5] - 1, 'WITHSCORES')
local ids, scores = {}, {}
for i = 1, #found, 2 do
  local at = tonumber(found[i + 1])
  if stop and at > stop then
    break
  end
  ids[#ids + 1], scores[#scores + 1] = found[i], at
end

local heads = hmget('$heads', ids)
local wanted, fields = {}, {}
local own, last = 0, 0
for i, head in ipairs(heads) do
  local read = head and {struct.unpack(NEW_HEAD_FORMAT, head)}
  if read and (tenant == '' or read[TENANT] == tenant) then
    own, last = own + 1, i
    local is_wanted = (states == '' or states:find(string.char(read[STATE]), 1, true))
      and (queue == '' or read[QUEUE] == queue) and (task == '' or read[TASK] == task)
    if is_wanted then
      wanted[#wanted + 1], fields[#fields + 1] = ids[i], read
    end
  end
end

local function matches(body)
  local fields = read_body(body)
  local has_tag = tag == ''
  for _, one in ipairs(fields[BODY_TAGS]) do
    has_tag = has_tag or one == tag
  end
  return has_tag and (parent == '' or fields[BODY_PARENT_ID] == parent)
    and (created_by == '' or fields[BODY_CREATED_BY] == created_by)
end

local bodies = (tag ~= '' or parent ~= '' or created_by ~= '') and hmget('$bodies', wanted)
local groups, order = {}, {}
for i, read in ipairs(fields) do
  if not bodies or (bodies[i] and matches(bodies[i])) then
    local reason = read[BECAUSE]:match('^[^:]*')
    local name = read[QUEUE] .. '\0' .. read[STATE] .. '\0' .. reason
    local group = groups[name]
    if not group then
      group = {read[QUEUE], read[STATE], reason, 0, read[ENQUEUED_AT]}
      groups[name], order[#order + 1] = group, group
    end
    group[4], group[5] = group[4] + 1, math.min(group[5], read[ENQUEUED_AT])
  end
end
return {#ids, scores[#ids] or 0, ids[#ids] or '', own, scores[last] or 0, ids[last] or '', order}
