-- uses: rules records lines turns parking homes admitting
-- Fold: bring a published batch on by one part: its next jobs in or, if any was refused, the last ones out again. Nobody
-- sees anything of it before its end, since no other script runs until then. Says whether there is more to do.
local stored = call('GET', P .. '$batch')
if not stored then
  return 0
end
local batch = unpack_one(stored)
NOW = batch.now
outcome.refused, outcome.repeats, outcome.over = batch.refused, batch.repeats, batch.over

local function take_in(key)
  local parts = call('LRANGE', key, 0, -1)
  local ids = read_ids(parts[2])
  local items = read_items(parts[1], #ids)
  know_items(ids, items)
  for i, item in ipairs(items) do
    admit((batch.at - 1) * CLAIM_MOST + i, ids[i], item, parts[2 + i], batch.options)
  end
  call('DEL', key)
  batch.at, batch.made = batch.at + 1, batch.made .. table.concat(outcome.made)
end

local function take_out()
  local kept = math.max(0, #batch.made - 16 * CLAIM_MOST)
  for _, id in ipairs(read_ids(batch.made:sub(kept + 1))) do
    withdraw(id)
  end
  batch.made = batch.made:sub(1, kept)
end

if batch.at <= batch.count then
  take_in(P .. '$staged' .. batch.name .. '\0' .. batch.at)
else
  take_out()
end
commit()
if batch.at <= batch.count or (#outcome.refused > 0 and batch.made ~= '') then
  call('SET', P .. '$batch', pack(batch))
  return 1
end
local answer = pack({batch.now, outcome.refused, outcome.repeats, outcome.over})
call('SET', P .. '$staged' .. batch.name .. '\0', answer, 'PX', STAGED_LASTS)
call('DEL', P .. '$batch')
return 0
