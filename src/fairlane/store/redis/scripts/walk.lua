-- uses: walking
-- Walk: the next jobs of a sorted set in the order of score and id. ARGV: the set, 'up' or 'down', the place to go
-- on from (score and id, exclusive; '' for the end of the set), how many, a score to stop at, 'now' or '', and the
-- states of jobs that are wanted, a byte each ('' for all). Gives the instant, ids and scores in turn, then heads, bodies,
-- attempts and results, which are missing of jobs that are not wanted.
local key, is_up, score, id = P .. ARGV[2], ARGV[3] == 'up', ARGV[4], ARGV[5]
local most, stop = tonumber(ARGV[6]), ARGV[7] == 'now' and NOW or tonumber(ARGV[7])

local rank = passed(key, is_up, score, id)
local found = call(is_up and 'ZRANGE' or 'ZREVRANGE', key, rank, rank + most - 1, 'WITHSCORES')
local ids, places = {}, {}
for i = 1, #found, 2 do
  local at = tonumber(found[i + 1])
  if stop and ((is_up and at > stop) or (not is_up and at < stop)) then
    break
  end
  ids[#ids + 1] = found[i]
  places[#places + 1] = found[i]
  places[#places + 1] = at
end

local heads = read_fields('$heads', ids)
local wanted, numbers = {}, {}
for i, head in ipairs(heads) do
  if head and (ARGV[8] == '' or ARGV[8]:find(head:sub(2, 2), 1, true)) then -- STATE is its second byte
    wanted[#wanted + 1], numbers[#numbers + 1] = ids[i], i
  else
    heads[i] = false
  end
end

local function parts(key)
  local found, placed = read_fields(key, wanted), {}
  for i = 1, #ids do
    placed[i] = false
  end
  for i, number in ipairs(numbers) do
    placed[number] = found[i]
  end
  return placed
end

return {NOW, places, heads, parts('$bodies'), parts('$attempts'), parts('$results')}
