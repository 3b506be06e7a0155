-- uses: journal limits/gates
-- Replace the states of breakers, all of them or none: none if one has changed since it was read.
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the entries of the journals, packed; then five of each breaker: its field, the state and what claims read of it as
-- they were read ('' for none), and both as they are now ('' for a closed one).
-- Reply: whether they were replaced.
for i = 3, #ARGV, 5 do
  if (hget('$breakers', ARGV[i]) or '') ~= ARGV[i + 1] or (hget('$open_breakers', ARGV[i]) or '') ~= ARGV[i + 2] then
    return 0
  end
end
for i = 3, #ARGV, 5 do
  local field, open = ARGV[i], ARGV[i + 4]
  hset('$breakers', field, ARGV[i + 3])
  hset('$open_breakers', field, open ~= '' and open)
  zadd('$breakers_named', 0, field)
  if ARGV[i + 2] ~= '' then
    hint_gate_queues('breaker ' .. field:gsub('%z$', ''):gsub('%z', ' '))
  end
end
journal.append_all(ARGV[2])
commit()
return 1
