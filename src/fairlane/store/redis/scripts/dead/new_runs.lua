-- uses: jobs/job_head
-- Look how jobs have ended that run in place of dead ones.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the member of `new_runs` to go on after ('' for the start); [3] how many to read.
-- Reply: how many were read, the last member; then for each that has ended: id of the letter, id of the new job, its
-- state (0: it is gone) and when it settled.
local after, limit, runs, ended = ARGV[2], tonumber(ARGV[3]), {}, {}
local members = call('ZRANGE', PREFIX .. '$new_runs', after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, limit)
for i, member in ipairs(members) do
  runs[i] = member:sub(17)
end
for i, bytes in ipairs(hmget('$heads', runs)) do
  local head = bytes and read_head(bytes)
  if not head or head[SETTLED_AT] > 0 then
    ended[#ended + 1] = {members[i]:sub(1, 16), runs[i], head and head[STATE] or 0, head and head[SETTLED_AT] or 0}
  end
end
return {#members, members[#members] or '', ended}
