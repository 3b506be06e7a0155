-- uses: rules records turns parking homes admitting
-- Fold: bring a published batch on by one part: its next jobs in or, if any was refused, the last ones out again. Nobody
-- sees anything of it before its end, since no other script runs until then. Says whether there is more to do.
local stored = call('GET', P .. '$batch')
if not stored then
  return 0
end
local batch = unpack_one(stored)
NOW, outcome = batch.now, batch.outcome

local function take_in(key)
  local parts = call('LRANGE', key, 0, -1)
  local ids = read_ids(parts[2])
  local items = read_items(parts[1], #ids)
  know_items(ids, items)
  for i, item in ipairs(items) do
    admit((batch.at - 1) * CLAIM_MOST + i, ids[i], item, parts[2 + i], batch.options)
  end
  call('DEL', key)
end

local is_more = true
if batch.at <= batch.count then
  take_in(P .. '$staged' .. batch.name .. '\0' .. batch.at)
  batch.at = batch.at + 1
elseif #outcome.refused > 0 and #outcome.made > 0 then
  for _ = 1, math.min(CLAIM_MOST, #outcome.made) do
    withdraw(table.remove(outcome.made))
  end
else
  is_more = false
  local key = P .. '$staged' .. batch.name .. '\0'
  call('SET', key, pack({batch.now, outcome.refused, outcome.repeats, outcome.over}), 'PX', STAGED_LASTS)
end
commit()
if is_more then
  call('SET', P .. '$batch', pack(batch))
else
  call('DEL', P .. '$batch')
end
return is_more and 1 or 0
