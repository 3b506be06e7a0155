-- uses: claims/choose jobs/attempts limits/budgets
-- Claim: start attempts of the chosen jobs for a worker, in one script or in several that share a continuation.
-- Reads the hashes `heads`, `bodies` and `attempts`; writes `heads`, `leases` and `continuation`.

-- Start an attempt of a job. Return its head and its ended attempts.
local function start_attempt(request, id, head, body)
  local charge, attempts = charges[id] or NO_CHARGE, ''
  if head[ATTEMPT] > 0 then
    attempts = packed_attempts[id] or hget('$attempts', id)
  end
  -- A fence is never below the instant: it grows also if the store has lost the claim before in a crash.
  head[STATE], head[ATTEMPT], head[FENCE] = CLAIM_TO, head[ATTEMPT] + 1, math.max(head[FENCE] + 1, NOW)
  head[WORKER], head[STARTED_AT], head[LEASE_UNTIL] = request.worker, NOW, NOW + request.lease
  head[GATE], head[CHARGED] = charge[CHARGE_GATE], charge[CHARGE_COST]
  if head[IS_DEDUP_UNTIL_STARTED] == 1 then
    keys.free_dedup(id, head)
  end
  if head[EXPIRES_AT] > 0 then
    sorted_set('$expiries'):remove(id)
  end
  budgets.note_claim(id, head, body)
  local bytes = write_head(head)
  add_new('HSET', '$heads', id, bytes)
  return bytes, attempts
end

-- Start attempts of all chosen jobs. Return id, head, body and attempts of each, one after the other. Most jobs are
-- claimed for the first time and have no gate: what the claim adds to their heads is the same for all. They are
-- returned with the heads they had; the client adds the rest (FirstClaimReader).
local function start_attempts(request, claimed)
  local reply, bytes_of, bodies = {}, parts_of(claimed)
  local lease_until, claim_fields = NOW + request.lease, first_claim_fields(request.worker, NOW + request.lease)
  for i, id in ipairs(claimed) do
    local head, bytes, attempts = heads[id], bytes_of[i], ''
    if not head and not charges[id] and (heads_ahead[id] or is_plain_new_job(bytes)) then
      add_new('HSET', '$heads', id, with_first_claim(bytes, claim_fields))
    else
      bytes, attempts = start_attempt(request, id, head or read_head(bytes), bodies[i])
    end
    zadd('$leases', lease_until, id)
    local count = #reply
    reply[count + 1], reply[count + 2], reply[count + 3], reply[count + 4] = id, bytes, bodies[i], attempts
  end
  return reply
end

-- Do one script's part of a claim and commit. Return the continuation ('' at the end), when to look again, whether a
-- bound was met, whether the part ahead was cut, the instant, the claims, the ids of those whose budget is spent, of those
-- with a permit, and the breakers that are not closed.
local function claim_step(request, continuation, limit)
  local claimed, is_done = choose_jobs(request, continuation, limit)
  local claims, due, partial = start_attempts(request, claimed), 0, false
  if is_done and continuation.claimed < request.total then
    local names = {}
    for name in pairs(continuation.queues) do
      names[#names + 1] = name
    end
    due, partial = next_due(names), is_partial(request, continuation)
  end
  local named = breakers.named(request)
  commit()
  local is_cut = continuation.is_ahead_cut and 1 or 0
  return {is_done and '' or pack(continuation), due, partial and 1 or 0, is_cut, NOW, claims, budgets.over, breakers.taken,
    named}
end

-- Do the part of a claim that comes with one page of settlements. Each page goes on where the one before stopped: the
-- continuation waits under `key`, and only the last page returns it. A claim that is done before the last page begins
-- anew with the next one, whose settlements may have freed something.
local function claim_with_page(request, key, page, pages)
  local stored = page > 1 and call('GET', PREFIX .. key)
  if page > 1 and not stored then -- a page before was refused, and may come once more
    commit()
    return {'', 0, 1, 0, NOW, {}, {}, {}, {}}
  end
  local continuation = stored and unpack_one(stored) or new_continuation()
  local reply = claim_step(request, continuation, MAX_JOBS_PER_SCRIPT)
  if page == pages then
    if stored then
      call('DEL', PREFIX .. key)
    end
    return reply
  end
  if reply[1] == '' then
    continuation.request_number, continuation.parks = 1, 0
    continuation.is_bound_met, continuation.is_ahead_cut, continuation.queues = false, false, {}
  end
  call('SET', PREFIX .. key, pack(continuation), 'PX', STAGED_TTL_MS)
  return reply
end
