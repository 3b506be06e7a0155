-- uses:
-- Ended attempts of a job, in the hash `attempts`: one packed attempt after the other, oldest first (S24).

local packed_attempts = {} -- by id: what this script has written
local last = {}

-- Pack an ended attempt. Most that are settled together are alike: the bytes of the last one are used again.
local function pack_attempt(head, outcome, failure, log)
  local number, worker, started_at = head[ATTEMPT], head[WORKER], head[STARTED_AT]
  if last.started_at ~= started_at or last.number ~= number or last.worker ~= worker
    or last.outcome ~= outcome or last.failure ~= failure or last.log ~= log then
    local bytes = '\151' .. pack(number, worker, started_at, NOW, outcome) .. failure .. log
    last = {
      number = number, worker = worker, started_at = started_at, outcome = outcome, failure = failure, log = log,
      bytes = bytes,
    }
  end
  return last.bytes
end

-- Append an ended attempt; `failure` and `log` are packed already. Only the last ones stay: attempts have consecutive
-- numbers, so the number of the oldest says how many there are.
local function append_attempt(id, head, outcome, failure, log, kept)
  local attempts = pack_attempt(head, outcome, failure, log)
  if head[ATTEMPT] > 1 then
    local before = hget('$attempts', id) or ''
    if head[ATTEMPT] > kept and before ~= '' then
      local _, oldest = cmsgpack.unpack_one(before, 0)
      local at = 0
      for _ = oldest[1], head[ATTEMPT] - kept do
        at = cmsgpack.unpack_one(before, at)
      end
      before = at < 0 and '' or before:sub(at + 1)
    end
    attempts = before .. attempts
  end
  packed_attempts[id] = attempts
  add_new('HSET', '$attempts', id, attempts)
end
