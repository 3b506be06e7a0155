-- uses: rules records lines strands turns parking blocks homes handout peeking
-- Peek: claim for nobody, as often as one claim's bounds demand, and write nothing (S65). ARGV: queue, how many, the tenant
-- as if whom no other had any, or ''; how many in this script; what the script before knew, or ''. Gives the instant, ids,
-- and what the next one must know; '' at the end. Nothing at all if the queue has changed under it.
local name, most, only, step = ARGV[2], tonumber(ARGV[3]), ARGV[4] ~= '' and ARGV[4] or nil, tonumber(ARGV[5])
local kept = ARGV[6] ~= '' and unpack_one(ARGV[6]) or {begin_claim(), most}
local carry, total = kept[1], kept[2]
heirs_most = 0
if kept[3] then
  resume(name, kept[3])
end

local function look_on()
  local request = {wishes = {{name, total}}, total = total, headroom = 0}
  local served, is_done = hand_out(request, carry, step, only)
  local left = total - carry.served
  if is_done and (left == 0 or not is_partial(request, carry)) then
    return {NOW, served, ''}
  end
  if is_done then
    carry, total = begin_claim(), left
  end
  return {NOW, served, pack({carry, total, suspend(queue_named(name))})}
end

if not kept[3] then
  return look_on()
end
local is_well, answer = pcall(look_on)
return is_well and answer or {}
