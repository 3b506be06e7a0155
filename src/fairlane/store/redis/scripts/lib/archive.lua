-- uses:
-- Jobs that are removed and not yet archived (S105). `archive_batches` has by number when a batch was closed ('' while it is
-- open), and `last`, so that no number is used again; `archived` is a hash of one batch, by id and tenant.

local archive = {}

-- Return the number of the batch to which jobs come, false if there is none.
function archive.open()
  local last = hget('$archive_batches', 'last')
  return last and hget('$archive_batches', last) == '' and last
end

function archive.add(id, tenant, record)
  local number = archive.open()
  if not number then
    number = tostring((tonumber(hget('$archive_batches', 'last') or '0') or 0) + 1)
    hset('$archive_batches', 'last', number)
    hset('$archive_batches', number, '')
  end
  hset('$archived' .. number, id .. tenant, record)
end
