-- uses:
-- The head of a job: all that changes, and all that scripts must know of it. Packed by hand, since scripts read and
-- write it for each job. The fields and their format come from records/head.py; a flag is 0 or 1. A job that was never
-- claimed and has not ended has the first half of the fields only (IS_NEW). One that came back unstarted (S68) has no
-- attempt either, but a fence that must grow: it has all fields. Touches no key.

local function read_head(bytes)
  if bytes:byte() == 1 then -- IS_NEW
    bytes = bytes .. NO_CLAIM_FIELDS
  end
  return {struct.unpack(HEAD_FORMAT, bytes)}
end

local function write_head(head)
  if head[ATTEMPT] == 0 and head[FENCE] == 0 and head[SETTLED_AT] == 0 then
    head[IS_NEW] = 1
    return struct.pack(NEW_HEAD_FORMAT, unpack(head, 1, NEW_HEAD_FIELDS))
  end
  head[IS_NEW] = 0
  return struct.pack(HEAD_FORMAT, unpack(head, 1, HEAD_FIELDS))
end

-- Return whether a job was never claimed, and neither expires nor frees a key when it is claimed.
local function is_plain_new_job(bytes)
  if bytes:byte() ~= 1 then -- IS_NEW
    return false
  end
  local _, _, _, is_dedup_until_started, _, _, expires_at = struct.unpack(NEW_HEAD_NUMBERS, bytes)
  return expires_at == 0 and is_dedup_until_started == 0
end

-- Return the second half of the head of a job that is claimed for the first time: the same for all of one script.
local function first_claim_fields(worker, lease_until)
  local claim_fields = {struct.unpack(CLAIM_FIELDS_FORMAT, NO_CLAIM_FIELDS)}
  local before = NEW_HEAD_FIELDS
  claim_fields[ATTEMPT - before], claim_fields[FENCE - before], claim_fields[STARTED_AT - before] = 1, NOW, NOW
  claim_fields[LEASE_UNTIL - before], claim_fields[WORKER - before] = lease_until, worker
  return struct.pack(CLAIM_FIELDS_FORMAT, unpack(claim_fields, 1, HEAD_FIELDS - before))
end

local function with_first_claim(bytes, claim_fields)
  return CLAIMED_HEAD_START .. bytes:sub(3) .. claim_fields
end
