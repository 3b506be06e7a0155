-- uses:
-- Write all that this script has changed, at its end: one command per key.

local before_commit = {} -- functions of other files that put their records into the buffer
local with_commit = {} -- functions that write what is no hash and no sorted set

local function write_hashes()
  for key, changes in pairs(changed_fields) do
    local set, gone = {}, {}
    for field, value in pairs(changes) do
      if value == false then
        gone[#gone + 1] = field
      else
        set[#set + 1] = field
        set[#set + 1] = value
      end
    end
    call_in_chunks('HSET', PREFIX .. key, set)
    call_in_chunks('HDEL', PREFIX .. key, gone)
  end
end

local function write_sorted_sets()
  for _, set in pairs(sorted_sets) do
    if set.is_changed then
      local added, gone = {}, {}
      for member, score in pairs(set.changed) do
        if score == false then
          gone[#gone + 1] = member
        else
          added[#added + 1] = score
          added[#added + 1] = member
        end
      end
      call_in_chunks('ZREM', set.key, gone)
      call_in_chunks('ZADD', set.key, added)
    end
  end
end

-- Removals first: a member that was removed and added stays.
local function write_new_entries()
  for key, list in pairs(removed_members) do
    call_in_chunks('ZREM', PREFIX .. key, list)
  end
  for key, list in pairs(new_entries) do
    call_in_chunks(list.command, PREFIX .. key, list)
  end
end

local function write_hints()
  for queue in pairs(queues_to_hint) do
    call('XADD', PREFIX .. '$hints' .. queue, 'MAXLEN', 1, '*', '', '')
  end
  for worker in pairs(workers_to_hint) do
    call('XADD', PREFIX .. '$worker_hints' .. worker, 'MAXLEN', 1, '*', '', '')
    call('PEXPIRE', PREFIX .. '$worker_hints' .. worker, HINT_TTL_MS)
  end
end

local function commit()
  for i = 1, #before_commit do
    before_commit[i]()
  end
  write_hashes()
  write_sorted_sets()
  write_new_entries()
  for i = 1, #with_commit do
    with_commit[i]()
  end
  write_hints()
end
