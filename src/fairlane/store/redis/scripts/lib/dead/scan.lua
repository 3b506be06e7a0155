-- uses: jobs/paging
-- Read dead letters that match filters, latest death first, without their jobs: `letters` has all that is compared.
-- ARGV: [2], [3] time of death and id of the position to go on after ('' for the start); [4] how many to read; [5] how
-- many of the tenant's own to read; [6] how many to find; [7] the earliest death or ''; then the filters, '' for all:
-- [8] tenant, [9] queue, [10] task, [11] class, [12] '=' and the fingerprint, [13] number of the review, [14] '1' or '0':
-- whether it is acknowledged.

local scan = {is_over = 0, is_cut = 0, own = 0, last = {0, ''}, unknown = {}}

local function fits(filter, value)
  return filter == '' or filter == value
end

local function is_wanted(letter)
  return fits(ARGV[9], letter[LETTER_QUEUE]) and fits(ARGV[10], letter[LETTER_TASK])
    and fits(ARGV[11], letter[LETTER_ERROR_CLASS]) and fits(ARGV[12], '=' .. letter[LETTER_FINGERPRINT])
    and fits(ARGV[13], tostring(letter[LETTER_REVIEW])) and fits(ARGV[14], tostring(letter[LETTER_IS_ACKNOWLEDGED]))
end

-- Many letters have the same record, which is looked at once: 0 if it is another tenant's, 1 if it is the tenant's own,
-- 2 if it is wanted. Without a filter none is looked at.
local looks, has_filters = {}, false
for i = 8, 14 do
  has_filters = has_filters or ARGV[i] ~= ''
end

local function look_at(stored)
  if not has_filters then
    return 2
  end
  local look = looks[stored]
  if not look then
    local letter = {struct.unpack(LETTER_FORMAT, stored)}
    look = fits(ARGV[8], letter[LETTER_TENANT]) and (is_wanted(letter) and 2 or 1) or 0
    looks[stored] = look
  end
  return look
end

-- Return the ids of dead letters of which nothing is noted yet: of an older version.
local function unknown_among(ids, stored)
  local missing, unknown = {}, {}
  for i = 1, #ids do
    if not stored[i] then
      missing[#missing + 1] = ids[i]
    end
  end
  for i, head in ipairs(hmget('$heads', missing)) do
    if head then
      unknown[#unknown + 1] = missing[i]
    end
  end
  return unknown
end

-- Call `on_wanted` with id, record and time of death of each letter that matches. It stops before one of the tenant's
-- own that is beyond a bound (`is_cut`), and before a death that is too early (`is_over`).
function scan.run(on_wanted)
  local key, limit, most_own, most_found = PREFIX .. '$finished' .. DEAD, tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local earliest = tonumber(ARGV[7]) or -1
  local rank = rank_after(key, false, ARGV[2], ARGV[3])
  local places, ids, found = call('ZREVRANGE', key, rank, rank + limit - 1, 'WITHSCORES'), {}, 0
  for i = 1, #places, 2 do
    ids[(i + 1) / 2] = places[i]
  end
  local stored = hmget('$letters', ids)
  scan.unknown, scan.is_over = unknown_among(ids, stored), #ids < limit and 1 or 0
  for i = 1, #scan.unknown == 0 and #ids or 0 do
    local look, died_at = stored[i] and look_at(stored[i]) or 0, tonumber(places[2 * i])
    if died_at < earliest then
      scan.is_over = 1
      return
    end
    if look > 0 then
      if scan.own == most_own or found == most_found then
        scan.is_over, scan.is_cut = 0, 1
        return
      end
      scan.own, scan.last = scan.own + 1, {died_at, ids[i]}
      if look == 2 then
        found = found + 1
        on_wanted(ids[i], stored[i], died_at)
      end
    end
  end
  scan.read_up_to = {places[#places] or 0, ids[#ids] or ''}
end

function scan.reply(found)
  local at, last = scan.read_up_to or EMPTY, scan.last
  return {scan.unknown, scan.is_over, scan.is_cut, at[1] or 0, at[2] or '', scan.own, last[1], last[2], found}
end
