-- uses: rules records lines turns parking blocks homes
-- Explain: what holds a ready job, in the order of the contract. ARGV: its id. Gives reason, subject and until ('' and
-- 0 if nothing of this holds it), and how many of its tenant go first; nothing if it is not ready.
local id = ARGV[2]
local head = head_of(id)
if not head or head[STATE] ~= READY then
  return {}
end
local turn, key, ahead = turn_of(head), sort_key(head), 0
for task, strand in pairs(turn.strands) do
  if strand[2] > 0 then
    local jobs = P .. '$strand' .. head[QUEUE] .. '\0' .. head[TENANT] .. '\0' .. task
    if strand[4] ~= id and not is_ahead(key, id, strand) then
      ahead = ahead + 1 -- the head of the strand, which is not in its set
    end
    if task == head[TASK] then
      ahead = ahead + (strand[4] ~= id and call('ZRANK', jobs, id) or 0)
    else
      ahead = ahead + call('ZCOUNT', jobs, '-inf', '(' .. string.format('%.0f', key))
      for _, other in ipairs(call('ZRANGEBYSCORE', jobs, key, key, 'LIMIT', 0, AHEAD_MOST)) do
        ahead = ahead + (is_before(other, id) and 1 or 0)
      end
    end
  end
end
local block = pause_of('queue ' .. head[QUEUE]) or pause_of('tenant ' .. head[TENANT]) or pause_of('task ' .. head[TASK])
  or queue_block(turn.queue) or turn_block(turn) or strand_block(head[TASK]) or {'', '', 0}
return {block[1], block[2], block[3], math.min(ahead, AHEAD_MOST)}
