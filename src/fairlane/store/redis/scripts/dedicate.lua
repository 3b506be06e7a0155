-- uses:
-- Dedicate: say what the store is for, for good, if it holds no job. ARGV: purpose. Gives the purpose before, or '',
-- and whether it is what was asked for now.
local before = look('$meta', 'purpose') or ''
local is_free = before == '' and call('HLEN', P .. '$heads') == 0
if is_free then
  put('$meta', 'purpose', ARGV[2])
  commit()
end
return {before, (is_free or before == ARGV[2]) and 1 or 0}
