-- uses: jobs/peek_state
-- Peek: claim without committing, as often as the bounds of one claim demand (S65).
-- KEYS[1], ARGV[1]: base/buffer.lua.
-- ARGV: [2] the queue; [3] how many; [4] the only tenant, as if no other had jobs, or ''; [5] how many in this
-- script; [6] the state of the script before, or ''.
-- Reply: the instant, ids, the state for the next script ('' at the end); empty if the queue has changed under it.
local name, only_tenant, step = ARGV[2], ARGV[4] ~= '' and ARGV[4] or nil, tonumber(ARGV[5])
local saved = ARGV[6] ~= '' and unpack_one(ARGV[6]) or {continuation = new_continuation(), total = tonumber(ARGV[3])}
local continuation, total = saved.continuation, saved.total
max_prefetch = 0
if saved.state then
  load_peek(name, saved.state)
  for _, id in ipairs(saved.passed) do
    breakers.passed[id] = true
  end
  breakers.taken = saved.passed
end

local function peek_step()
  local request = {queue_requests = {{name, total}}, total = total, headroom = 0, ahead = 0}
  local claimed, is_done = choose_jobs(request, continuation, step, only_tenant)
  local left = total - continuation.claimed
  if is_done and (left == 0 or not is_partial(request, continuation)) then
    return {NOW, claimed, ''}
  end
  if is_done then
    continuation, total = new_continuation(), left
  end
  return {NOW, claimed, pack({
    continuation = continuation, total = total, state = save_peek(load_queue(name)), passed = breakers.taken,
  })}
end

if not saved.state then
  return peek_step()
end
local is_well, answer = pcall(peek_step)
return is_well and answer or {}
