-- uses:
-- Find the settlements of the last finished and the last dead job that limits by number keep (S103).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] how many of the newest succeeded and cancelled jobs are kept, [3] how many dead ones; 0 for all; [4] to [6] the
-- numbers of the states succeeded, cancelled and dead.
-- Reply: the two settlements; 0 if there are fewer jobs.

local function settled_at(key, number)
  return tonumber(call('ZREVRANGE', key, number - 1, number - 1, 'WITHSCORES')[2])
end

-- The newest of two sets together: halve the question of how many of them are in the first set.
local function last_of_newest(first, second, number)
  local in_first, in_second = call('ZCARD', first), call('ZCARD', second)
  if number == 0 or in_first + in_second < number then
    return 0
  end
  local low, high = math.max(0, number - in_second), math.min(number, in_first)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if settled_at(first, middle + 1) > settled_at(second, number - middle) then
      low = middle + 1
    else
      high = middle
    end
  end
  local last = low > 0 and settled_at(first, low) or math.huge
  return math.min(last, low < number and settled_at(second, number - low) or math.huge)
end

local dead = tonumber(ARGV[3])
local last_dead = dead > 0 and settled_at(PREFIX .. '$finished' .. ARGV[6], dead) or 0
return {last_of_newest(PREFIX .. '$finished' .. ARGV[4], PREFIX .. '$finished' .. ARGV[5], tonumber(ARGV[2])), last_dead}
