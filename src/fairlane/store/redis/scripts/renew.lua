-- uses: rules records lines strands turns parking homes
-- Renew: extend the leases of a worker's claims and keep their progress (S37, S62). ARGV: worker, tenant of the
-- scope or '', lease, the ids (16 bytes each), fences and progress. Says of each: 0 stale, 1 kept, 2 and asked to
-- stop.
local worker, scope, until_ = ARGV[2], ARGV[3], NOW + ARGV[4]
local renewals, ids, replies = unpack_one(ARGV[6]), read_ids(ARGV[5]), {}
know_heads(ids)
for i, renewal in ipairs(renewals) do
  local head = heads[ids[i]]
  replies[i] = 0
  if
    head and head[STATE] == RUNNING and head[FENCE] == renewal[1] and head[WORKER] == worker
    and (scope == '' or scope == head[TENANT])
  then
    if head[CHARGED] >= 0 then
      charge_time(turn_of(head), head, false)
    end
    head[LEASE_UNTIL] = until_
    if renewal[2] ~= '' then
      head[PROGRESS] = renewal[2]
    end
    add('$leases', until_, ids[i])
    put_head(ids[i], head)
    replies[i] = head[IS_CANCEL_ASKED] == 1 and 2 or 1
  end
end
commit()
return {until_, replies}
