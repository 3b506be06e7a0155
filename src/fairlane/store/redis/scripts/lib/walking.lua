-- Walking: the members of a sorted set in the order of score and id, from a place on.

-- Count those before a place (score and id, '' for the end of the set), itself included.
local function passed(key, is_up, score, id)
  if score == '' then
    return 0
  end
  local kept = call('ZSCORE', key, id)
  if kept and tonumber(kept) == tonumber(score) then
    return call(is_up and 'ZRANK' or 'ZREVRANK', key, id) + 1
  end
  local count = is_up and call('ZCOUNT', key, '-inf', '(' .. score) or call('ZCOUNT', key, '(' .. score, '+inf')
  for _, other in ipairs(call('ZRANGEBYSCORE', key, score, score)) do
    if is_before(other, id) == is_up then
      count = count + 1
    end
  end
  return count
end
