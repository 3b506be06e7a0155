-- uses: jobs/state_changes jobs/job_body claims/spending
-- Renew the leases of a worker's claims and store their progress and metadata (S37, S62, S73).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the worker; [3] the tenant of the scope or ''; [4] the lease; [5] the ids, 16 bytes each; [6] msgpack
-- list of {fence, progress, metadata, spent so far}, progress and metadata '' where there is nothing new.
-- Reply: the new end of the leases; for each claim 0 (lost), 1 (renewed) or 2 (renewed, and cancellation was
-- requested).
local worker, scope, until_ = ARGV[2], ARGV[3], NOW + ARGV[4]
local renewals, ids, replies = unpack_one(ARGV[6]), split_ids(ARGV[5]), {}
load_heads(ids)
for i, renewal in ipairs(renewals) do
  local head = heads[ids[i]]
  replies[i] = 0
  if
    head and head[STATE] == RUNNING and head[FENCE] == renewal[RENEWAL_FENCE] and head[WORKER] == worker
    and (scope == '' or scope == head[TENANT])
  then
    if head[CHARGED] >= 0 then
      charge_time(tenant_queue_of(head), head, false)
    end
    head[LEASE_UNTIL] = until_
    if renewal[RENEWAL_PROGRESS] ~= '' then
      head[PROGRESS] = renewal[RENEWAL_PROGRESS]
    end
    if renewal[RENEWAL_METADATA] ~= '' then
      hset('$bodies', ids[i], with_metadata(hget('$bodies', ids[i]), renewal[RENEWAL_METADATA]))
    end
    if renewal[RENEWAL_SPENT] > 0 then
      budgets.report(ids[i], head[FENCE], 'renewed', renewal[RENEWAL_SPENT], scope)
    end
    zadd('$leases', until_, ids[i])
    put_head(ids[i], head)
    replies[i] = head[IS_CANCEL_ASKED] == 1 and 2 or 1
  end
end
commit()
return {until_, replies}
