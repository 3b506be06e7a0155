-- uses: queues/strands jobs/job_head
-- Return the first ready job of each of some tenants in a queue, whatever holds it.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the queue; [3] '' and then the tenants, or one tenant and then some of its tasks, if it has too many for its
-- record.
-- Reply: for each tenant its first job: id, run_at and sort key; empty if none is ready, 'wide' if its tasks must be
-- named. For tasks a list of one, the first of all of them.
local queue, only_tenant = ARGV[2], ARGV[3]
local names, reply = {}, {}
for i = 4, #ARGV do
  names[#names + 1] = ARGV[i]
end

local function first_of(strands)
  local first
  for _, strand in pairs(strands) do
    if strand[READY_COUNT] > 0 and (not first or before_head(strand[HEAD_KEY], strand[HEAD_ID], first)) then
      first = strand
    end
  end
  return first or {}
end

if only_tenant ~= '' then
  local strands = {}
  for i, bytes in ipairs(hmget('$strands' .. queue .. '\0' .. only_tenant, names)) do
    strands[i] = bytes and read_strand(bytes) or nil
  end
  reply[1] = first_of(strands)
else
  for i, bytes in ipairs(hmget('$tenant_queues' .. queue, names)) do
    reply[i] = {}
    if bytes then
      local tenant_queue, _, _, size = read_tenant_queue(bytes)
      reply[i] = size and {'wide'} or first_of(tenant_queue.strands)
    end
  end
end

local ids = {}
for _, strand in ipairs(reply) do
  ids[#ids + 1] = strand[HEAD_ID]
end
local heads, at = hmget('$heads', ids), 0
for i, strand in ipairs(reply) do
  if strand[HEAD_ID] then
    at = at + 1
    local run_at = heads[at] and read_head(heads[at])[RUN_AT] or 0
    reply[i] = {strand[HEAD_ID], run_at, string.format('%.0f', strand[HEAD_KEY])}
  end
end
return reply
