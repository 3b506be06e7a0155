-- uses:
-- Entries that this script appends to the journals, `audit` and `events` (S60, S76). They have no number yet: each goes
-- to the end of a stream, and a duty numbers it (journal/number.lua). So nothing is read here, and nobody waits.
-- An entry is the instant in 8 bytes and a msgpack array that begins with its form (records/entries.py). What this
-- script makes itself, it notes as facts: the text of the entry is made when it is read.
-- In one table: Lua allows 200 local names, and a script that settles has nearly as many.

local journal = {appended = {}}

-- Append an entry that is packed already.
function journal.append(name, packed)
  journal.appended[#journal.appended + 1] = {name, packed}
end

-- Append entries that Python has made, one after the other (ENTRY_FORMAT): the journal, and the packed entry.
function journal.append_all(bytes)
  local at, size = 1, #bytes
  while at <= size do
    local name, packed, following = struct.unpack(ENTRY_FORMAT, bytes, at)
    journal.append(name, packed)
    at = following
  end
end

-- Return the id of a job as text.
function journal.uuid_text(id)
  local bytes = '%02x%02x'
  local format = bytes:rep(2) .. ('-' .. bytes):rep(3) .. '-' .. bytes:rep(3)
  return format:format(id:byte(1, 16))
end

with_commit[#with_commit + 1] = function()
  local instant = struct.pack('>i8', NOW)
  for _, one in ipairs(journal.appended) do
    call('XADD', PREFIX .. '$pending_entries' .. one[1], '*', '', instant .. one[2])
  end
end
