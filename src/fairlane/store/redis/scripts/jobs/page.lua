-- uses: jobs/paging dead/reviews
-- Return the next jobs of a sorted set, in the order of score and id.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the set; [3] 'up' or 'down'; [4], [5] score and id of the position to go on after ('' for the start); [6]
-- how many; [7] the score to stop at, 'now' or ''; [8] the wanted states, a byte each ('' for all).
-- Reply: the instant; ids and scores in turn; then heads, bodies, attempts, results and reviews, false for jobs that are
-- not wanted.
local key, is_up, score, id = PREFIX .. ARGV[2], ARGV[3] == 'up', ARGV[4], ARGV[5]
local limit, stop = tonumber(ARGV[6]), ARGV[7] == 'now' and NOW or tonumber(ARGV[7])

local rank = rank_after(key, is_up, score, id)
local found = call(is_up and 'ZRANGE' or 'ZREVRANGE', key, rank, rank + limit - 1, 'WITHSCORES')
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

local heads = hmget('$heads', ids)
local wanted, numbers = {}, {}
for i, head in ipairs(heads) do
  if head and (ARGV[8] == '' or ARGV[8]:find(head:sub(2, 2), 1, true)) then -- STATE is its second byte
    wanted[#wanted + 1], numbers[#numbers + 1] = ids[i], i
  else
    heads[i] = false
  end
end

local function parts(key)
  local found, placed = hmget(key, wanted), {}
  for i = 1, #ids do
    placed[i] = false
  end
  for i, number in ipairs(numbers) do
    placed[number] = found[i]
  end
  return placed
end

return {NOW, places, heads, parts('$bodies'), parts('$attempts'), parts('$results'), reviews_of(ids, heads)}
