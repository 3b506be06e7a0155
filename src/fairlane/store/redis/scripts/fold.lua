-- uses: rules records lines strands turns parking homes admitting
-- Fold: bring a published batch on by one part: its next jobs in or, if any was refused, the last ones out again. Nobody
-- sees anything of it before its end, since no other script runs until then. Says whether there is more to do.
local stored = call('GET', P .. '$batch')
if not stored then
  return 0
end
local batch = unpack_one(stored)
NOW = batch.now
outcome.refused, outcome.repeats, outcome.over = batch.refused, batch.repeats, batch.over
outcome.linked = batch.linked or {} -- an older client publishes none

local function take_in(key)
  local items = read_items(call('GET', key))
  know_items(items)
  for i, item in ipairs(items) do
    admit(batch.seen + i, item, batch.options)
  end
  call('DEL', key)
  batch.at, batch.seen = batch.at + 1, batch.seen + #items
  batch.made = batch.made .. table.concat(outcome.made)
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
local answer = pack({batch.now, outcome.refused, outcome.repeats, outcome.over, outcome.linked})
call('SET', P .. '$staged' .. batch.name .. '\0', answer, 'PX', STAGED_LASTS)
call('DEL', P .. '$batch')
return 0
