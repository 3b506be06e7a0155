-- uses: journal jobs/attempts jobs/job_head jobs/job_body
-- The deaths of this script: what filters of dead letters compare, and the events (S75, S76).
-- In one table: Lua allows 200 local names, and a script that settles has nearly as many.

local deaths = {by_cause = {}}

-- Count a death. Those of one tenant, queue, task and fingerprint are one event, which names the job with the smallest
-- id. `letter` is unpacked (LETTER_FORMAT).
function deaths.count(id, letter, because)
  local name = letter[LETTER_TENANT] .. '\0' .. letter[LETTER_QUEUE] .. '\0' .. letter[LETTER_TASK] .. '\0'
    .. letter[LETTER_FINGERPRINT]
  local death = deaths.by_cause[name]
  if not death then
    death = {id = id, letter = letter, because = because, count = 0}
    deaths.by_cause[name] = death
  elseif bytes_before(id, death.id) then
    death.id, death.letter, death.because = id, letter, because
  end
  death.count = death.count + 1
end

before_commit[#before_commit + 1] = function()
  for _, death in pairs(deaths.by_cause) do
    local letter, body = death.letter, hget('$bodies', death.id)
    journal.append('events', pack({
      'died', letter[LETTER_TENANT], letter[LETTER_QUEUE], letter[LETTER_TASK], letter[LETTER_FINGERPRINT], death.count,
      journal.uuid_text(death.id), death.because:match('^[^:]*'), letter[LETTER_ERROR_CLASS],
      body and read_body(body)[BODY_CREATED_BY] or nil,
    }))
  end
end

-- Return the last failure among the ended attempts of a job.
function deaths.last_failure(id)
  local attempts, at, found = packed_attempts[id] or hget('$attempts', id) or '', 0, nil
  while at >= 0 and at < #attempts do
    local following, attempt = cmsgpack.unpack_one(attempts, at)
    at, found = following, attempt[ATTEMPT_FAILURE] or found
  end
  return found
end

-- Note that the attempt of a job has made it a dead letter; `failure` is packed, or NIL.
function deaths.note(id, head, failure)
  local last = failure == NIL and deaths.last_failure(id) or failure ~= NIL and unpack_one(failure) or EMPTY
  local letter = struct.pack(
    LETTER_FORMAT, LETTER_IS_PENDING, 0, last.error_class or '', last.fingerprint or '', head[TENANT], head[QUEUE],
    head[TASK]
  )
  hset('$letters', id, letter)
  deaths.count(id, {struct.unpack(LETTER_FORMAT, letter)}, head[BECAUSE])
end
