-- uses:
-- Paging: the members of a sorted set in the order of score and id, from a position on. The caller
-- names the whole key.

-- Count the members up to a position (score and id; '' for the start), that member included.
local function rank_after(key, is_up, score, id)
  if score == '' then
    return 0
  end
  local stored = call('ZSCORE', key, id)
  if stored and tonumber(stored) == tonumber(score) then
    return call(is_up and 'ZRANK' or 'ZREVRANK', key, id) + 1
  end
  local count = is_up and call('ZCOUNT', key, '-inf', '(' .. score) or call('ZCOUNT', key, '(' .. score, '+inf')
  for _, other in ipairs(call('ZRANGEBYSCORE', key, score, score)) do
    if bytes_before(other, id) == is_up then
      count = count + 1
    end
  end
  return count
end
