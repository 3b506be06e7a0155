-- uses: jobs/admission
-- Bring the published batch one part further: its next jobs in or, if any was refused, the last ones out again.
-- Nobody sees anything of it meanwhile, since no other script runs before its end.
-- Reply: 1 if there is more to do, else 0.
local stored = call('GET', PREFIX .. '$batch')
if not stored then
  return 0
end
local batch = unpack_one(stored)
NOW = batch.now
outcome.refused, outcome.repeats, outcome.over = batch.refused, batch.repeats, batch.over
-- An older client publishes none of these.
batch.linked, batch.warnings, batch.created = batch.linked or {}, batch.warnings or {}, batch.created or {}
outcome.linked, outcome.warnings, outcome.created = batch.linked, batch.warnings, batch.created

local function insert_part(key)
  local new_jobs = read_new_jobs(call('GET', key))
  load_admission(new_jobs)
  for i, new in ipairs(new_jobs) do
    admit(batch.seen + i, new, batch.options)
  end
  note_creators()
  call('DEL', key)
  batch.at, batch.seen = batch.at + 1, batch.seen + #new_jobs
  batch.made = batch.made .. table.concat(outcome.made)
end

local function undo_part()
  local left = math.max(0, #batch.made - 16 * MAX_JOBS_PER_SCRIPT)
  for _, id in ipairs(split_ids(batch.made:sub(left + 1))) do
    undo_insert(id)
  end
  batch.made = batch.made:sub(1, left)
end

if batch.at <= batch.count then
  insert_part(PREFIX .. '$staged' .. batch.name .. '\0' .. batch.at)
else
  undo_part()
end
local is_done = batch.at > batch.count and (#outcome.refused == 0 or batch.made == '')
if is_done and #outcome.refused == 0 then
  append_outcome(batch.options.operation)
end
commit()
if not is_done then
  call('SET', PREFIX .. '$batch', pack(batch))
  return 1
end
local answer = pack({batch.now, outcome.refused, outcome.repeats, outcome.over, outcome.linked})
call('SET', PREFIX .. '$staged' .. batch.name .. '\0', answer, 'PX', STAGED_TTL_MS)
call('DEL', PREFIX .. '$batch')
return 0
