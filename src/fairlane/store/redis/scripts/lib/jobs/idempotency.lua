-- uses:
-- Idempotency and de-duplication keys (S13, S14).
-- `keys` has by tenant and key {KEY_JOB_ID, KEY_FINGERPRINT, KEY_STATE, KEY_SETTLED_AT, KEY_REPLACED}; the state is 0
-- while the job is unfinished. The key outlives its job by the retention of keys. `dedup` has by tenant, task and key
-- the id of the job, until that starts or settles. Sorted sets `keys_named`, `keys_ended` and `dedup_named` list them.
-- In one table: Lua allows 200 local names, and a script that claims has nearly as many.

local keys = {}

function keys.dedup_name(tenant, task, key)
  return tenant .. '\0' .. task .. '\0' .. key
end

-- Return what an idempotency key has, or nil.
function keys.holder(name)
  local stored = hget('$keys', name)
  return stored and unpack_one(stored) or nil
end

-- Let a new job take the keys it has.
function keys.take(new)
  local id, tenant = new[NEW_ID], new[NEW_TENANT]
  if new[NEW_IDEMPOTENCY_KEY] ~= '' then
    local name = tenant .. '\0' .. new[NEW_IDEMPOTENCY_KEY]
    hset('$keys', name, pack({id, new[NEW_FINGERPRINT], 0, 0, new.replaces}))
    zadd('$keys_named', 0, name)
  end
  if new[NEW_DEDUP_KEY] ~= '' then
    local name = keys.dedup_name(tenant, new[NEW_TASK], new[NEW_DEDUP_KEY])
    hset('$dedup', name, id)
    zadd('$dedup_named', 0, name)
  end
end

-- Free the de-duplication key of a job that has it.
function keys.free_dedup(id, head)
  if head[DEDUP_KEY] ~= '' then
    local name = keys.dedup_name(head[TENANT], head[TASK], head[DEDUP_KEY])
    if hget('$dedup', name) == id then
      hset('$dedup', name, false)
      sorted_set('$dedup_named'):remove(name)
    end
  end
end

-- End the keys of a job that has just finished: the idempotency key notes how, the other is free at once. `head` is
-- the head before: a scrubbed one has no keys.
function keys.finish(id, head, after)
  if head[IDEMPOTENCY_KEY] ~= '' then
    local name = head[TENANT] .. '\0' .. head[IDEMPOTENCY_KEY]
    local holder = keys.holder(name)
    if holder and holder[KEY_JOB_ID] == id then
      hset('$keys', name, pack({id, holder[KEY_FINGERPRINT], after[STATE], after[SETTLED_AT]}))
      sorted_set('$keys_ended'):add(after[SETTLED_AT], name)
    end
  end
  keys.free_dedup(id, head)
end

-- Give back the keys of a job that is taken out again: to the dead job that it had replaced, or to nobody.
function keys.give_back(id, head)
  keys.free_dedup(id, head)
  if head[IDEMPOTENCY_KEY] == '' then
    return
  end
  local name = head[TENANT] .. '\0' .. head[IDEMPOTENCY_KEY]
  local holder = keys.holder(name)
  local replaced = holder[KEY_REPLACED]
  if replaced then -- {id, settled at} of the dead job
    hset('$keys', name, pack({replaced[1], holder[KEY_FINGERPRINT], DEAD, replaced[2]}))
    sorted_set('$keys_ended'):add(replaced[2], name)
  else
    hset('$keys', name, false)
    sorted_set('$keys_named'):remove(name)
  end
end
