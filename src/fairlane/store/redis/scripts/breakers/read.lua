-- uses: jobs/state_changes
-- Return the instant, what is stored of some breakers, and which of some jobs run.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] ids, 16 bytes each, beside the jobs with a permit; [3...] the fields.
-- Reply: the instant; for each field the state and what claims read of it ('' if there is none); ids of those that run.
local reply, running, ids = {NOW}, {}, split_ids(ARGV[2])
for i = 3, #ARGV do
  local open = hget('$open_breakers', ARGV[i]) or ''
  reply[#reply + 1] = {hget('$breakers', ARGV[i]) or '', open}
  if open ~= '' then
    local _, _, _, at = struct.unpack(BREAKER_FORMAT, open)
    for _, id in ipairs(split_ids(open:sub(at))) do
      ids[#ids + 1] = id
    end
  end
end
for _, id in ipairs(ids) do
  if breakers.is_running(id) then
    running[#running + 1] = id
  end
end
reply[#reply + 1] = running
return reply
