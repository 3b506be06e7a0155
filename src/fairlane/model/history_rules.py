"""Judge the life of one job against the promises (S12-S15, S23, S24, S36, S38, S50, S63). Knows no other job.

Each rule is a function from a life to the violations that its records prove. A fault may break several
promises; each rule then speaks for its own, and only leaves out what follows from another rule's finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from fairlane.model.history_life import FOREVER, Circumstances, Claim, Life
from fairlane.model.history_verdict import Kind, Violation, accuse
from fairlane.model.ledger import Found, Reclaimed, Settled, Started
from fairlane.model.lifecycle import ENDINGS, TRANSITIONS, Event, Home, State, home, target

Rule: TypeAlias = Callable[[Life, Circumstances], Iterator[Violation]]

_OVERRULED: Final[dict[Event, tuple[State, ...]]] = {
    Event.SUCCEED: (),
    Event.RETRY: (State.CANCELLED, State.DEAD),
}
"""Where a settlement may lead besides its event's target: a cancel (S30) or the expiry (S21) may win."""

_MAY_LEAD_TO: Final[dict[Event, tuple[State, ...]]] = {
    Event.LOSE: TRANSITIONS[State.RUNNING, Event.LOSE],
    **{event: (target(event), *_OVERRULED.get(event, (State.CANCELLED,))) for event in ENDINGS},
}
_WITHDRAWN: Final = (State.CANCELLED, State.DEAD)
_NO_FAILURE: Final = (Event.SUCCEED, Event.SNOOZE, Event.HAND_BACK)


def origin(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Hold a job to one enqueue that somebody sent, and to one tenant for life."""
    job = life.job
    started = list(_starts(life.claims))
    if not life.enqueues and (life.exists or life.claims):
        proof = {*life.signs, *started, *life.found}
        yield accuse(Kind.UNEXPECTED, job, f"job {job} is there, but nobody enqueued it", *proof)
    made = [said for said in life.acknowledged if said.created]
    if len(made) > 1:
        yield accuse(Kind.CREATED_TWICE, job, f"job {job} was newly made {len(made)} times", *made)
    everything = (*life.enqueues, *life.repeats, *started, *life.found)
    tenants = {said.tenant: said for said in everything if said.tenant is not None}
    if len(tenants) > 1:
        story = f"job {job} belongs to {' and to '.join(sorted(tenants))}"
        yield accuse(Kind.TENANT_CROSSED, job, story, *tenants.values())


def numbering(life: Life, around: Circumstances) -> Iterator[Violation]:
    """Hold fences to one claim each and to growing, attempt numbers to rising (S24, S36)."""
    job = life.job
    by_fence = sorted(life.claims, key=lambda claim: claim.fence)
    numbered = [(claim, claim.numbers) for claim in by_fence if claim.numbers]
    for claim, numbers in numbered:
        if len(numbers) > 1 or len(claim.started) > 1:
            story = f"job {job} was handed out more than once under fence {claim.fence}"
            yield accuse(Kind.FENCE_REUSED, job, story, *claim.numbered)
    for (lower, was), (higher, now) in pairwise(numbered):
        # An outage may take a claim with its number; the fence, drawn from the clock, grows all the same.
        if max(now) > max(was) or around.had_outage(lower.seen_at, higher.seen_at):
            continue
        kind = Kind.ATTEMPT_REUSED if max(now) == max(was) else Kind.FENCE_REUSED
        story = (
            f"job {job} has fence {lower.fence} for attempt {max(was)} "
            f"and fence {higher.fence} for attempt {max(now)}"
        )
        yield accuse(kind, job, story, *lower.numbered, *higher.numbered)


def exclusion(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Find a claim that changed something, or was live, when it had been taken back or replaced."""
    job = life.job
    for index, claim in enumerate(life.claims):
        later = life.claims[index + 1 :]
        if claim.is_stale:
            why = "it had been reclaimed" if claim.reclaimed else "a later claim had started"
            story = f"a settlement of job {job} under fence {claim.fence} was accepted although {why}"
            yield accuse(Kind.STALE_ACCEPTED, job, story, *claim.ends, *_starts(later))
        if any(said.at > claim.next_start_at for said in claim.reclaimed):
            story = f"fence {claim.fence} of job {job} was reclaimed only after a later claim had started"
            yield accuse(Kind.TWO_LIVE_CLAIMS, job, story, *claim.reclaimed, *_starts(later))


def _starts(claims: list[Claim]) -> Iterator[Started]:
    return (said for claim in claims for said in claim.started)


def _first_finish(life: Life) -> Claim | None:
    return next((claim for claim in life.claims if claim.finishes and not claim.is_stale), None)


def ending(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Find an attempt that was ended twice, and anything that follows the end of a job (S23, S63)."""
    job, finish = life.job, _first_finish(life)
    for claim in life.claims:
        if max(len(claim.settled), len(claim.reclaimed)) > 1:
            story = f"fence {claim.fence} of job {job} was ended {len(claim.ends)} times"
            yield accuse(Kind.SETTLED_TWICE, job, story, *claim.ends)
    finishes = finish.finishes if finish else []
    for claim in life.claims[life.claims.index(finish) + 1 :] if finish else []:
        after = f"under fence {claim.fence} after it was {finishes[0].state} under an earlier one"
        if claim.started:
            yield accuse(Kind.RAN_AGAIN, job, f"job {job} started {after}", *finishes, *claim.started)
        if claim.ends:
            yield accuse(Kind.SETTLED_TWICE, job, f"job {job} was settled {after}", *finishes, *claim.ends)
    if life.withdrawn and len(life.withdrawn) + len(finishes) > 1:
        story = f"job {job} was ended {len(life.withdrawn) + len(finishes)} times, not always under a claim"
        yield accuse(Kind.SETTLED_TWICE, job, story, *life.withdrawn, *finishes)


def at_most_once(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Find a job of an at-most-once task that ran again after a lost claim (S63)."""
    if not any(said.once for said in life.enqueues):
        return
    for lower, higher in pairwise(life.starts):
        if lower.reclaimed:
            story = f"job {life.job} runs at most once, but started again after fence {lower.fence} was lost"
            yield accuse(Kind.RAN_AGAIN, life.job, story, *lower.started, *lower.reclaimed, *higher.started)


def success(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Find a success whose handler did not start, or raised."""
    job = life.job
    for claim in life.claims:
        claimed = [said for said in claim.settled if said.state is State.SUCCEEDED]
        if claimed and not claim.started:
            story = f"job {job} was settled as succeeded under fence {claim.fence}, but no handler started"
            yield accuse(Kind.NEVER_RAN, job, story, *claimed)
        if claimed and claim.ended and all(said.outcome == "raised" for said in claim.ended):
            story = f"job {job} was settled as succeeded under fence {claim.fence}, but its handler raised"
            yield accuse(Kind.FALSE_SUCCESS, job, story, *claimed, *claim.ended)


def moves(life: Life, _: Circumstances) -> Iterator[Violation]:
    """Find an answer of the store that no transition of the table gives (S23)."""
    for end in (end for claim in life.claims for end in claim.ends):
        event = end.event if isinstance(end, Settled) else Event.LOSE
        if end.state not in _MAY_LEAD_TO.get(event, ()):
            story = f"{event} of job {life.job} under fence {end.fence} led to {end.state}"
            yield accuse(Kind.ILLEGAL_MOVE, life.job, story, end)
    for out in life.withdrawn:
        if out.state not in _WITHDRAWN:
            yield accuse(Kind.ILLEGAL_MOVE, life.job, f"waiting job {life.job} was ended as {out.state}", out)


def resting_place(life: Life, around: Circumstances) -> Iterator[Violation]:
    """Look for the job in exactly one home at the end, the one of its state (S50)."""
    job, rows = life.job, life.found
    if len(rows) > 1:
        homes = " and ".join(sorted(row.home for row in rows))
        yield accuse(Kind.DOUBLED_HOME, job, f"job {job} was read {len(rows)} times: in {homes}", *rows)
    elif rows:
        yield from _placed(life, rows[0])
        yield from _counted(life, rows[0], around)
        if around.is_drained and rows[0].home is Home.HOT:
            yield accuse(Kind.NOT_DRAINED, job, f"job {job} is still {rows[0].state}", *rows)
    elif life.signs and life.enqueues and around.is_read:
        how = "was acknowledged" if life.acknowledged else "ran, though nobody knew it was accepted"
        yield accuse(
            Kind.LOST, job, f"job {job} {how}, and is in no home", *(life.acknowledged or life.signs)
        )


def _placed(life: Life, row: Found) -> Iterator[Violation]:
    """Compare the last state with its home and with what was accepted."""
    job = life.job
    if row.home is not home(row.state):
        yield accuse(Kind.WRONG_HOME, job, f"job {job} is {row.state}, but in {row.home}", row)
        return
    accepted = [*life.withdrawn, *(end for claim in life.claims for end in claim.finishes)]
    is_accepted = any(end.state is row.state for end in accepted)
    if not is_accepted and (life.withdrawn or _first_finish(life)):
        story = f"job {job} is {row.state}, but was accepted as {accepted[0].state}"
        yield accuse(Kind.WRONG_HOME, job, story, *accepted, row)
    elif not is_accepted and row.state is State.SUCCEEDED:
        if not life.starts:
            yield accuse(Kind.NEVER_RAN, job, f"job {job} succeeded, but no handler ever started", row)
        elif all(claim.ends for claim in life.starts):
            ends = [end for claim in life.starts for end in claim.ends]
            story = f"job {job} succeeded, but each attempt that started ended otherwise"
            yield accuse(Kind.WRONG_HOME, job, story, *ends, row)


def _counted(life: Life, row: Found, around: Circumstances) -> Iterator[Violation]:
    """Compare the counters with what was seen; what nobody recorded may have raised them further (S24)."""
    job = life.job
    seen = max((claim for claim in life.claims if claim.numbers), key=_highest, default=None)
    if seen and row.attempt < _highest(seen) and not around.had_outage(seen.seen_at, FOREVER):
        story = f"job {job} counts {row.attempt} attempts, but attempt {_highest(seen)} was seen"
        yield accuse(Kind.MISCOUNTED, job, story, *seen.numbered, row)
    failed = [claim for claim in life.claims if claim.ends and all(map(_is_failure, claim.ends))]
    spared = [claim for claim in life.claims if claim.ends and all(map(_is_no_failure, claim.ends))]
    if not len(failed) <= row.failures <= row.attempt - len(spared):
        story = (
            f"job {job} counts {row.failures} failures in {row.attempt} attempts, "
            f"but {len(failed)} certainly failed and {len(spared)} certainly did not"
        )
        ends = [end for claim in (*failed, *spared) for end in claim.ends]
        yield accuse(Kind.MISCOUNTED, job, story, *ends, row)


def _highest(claim: Claim) -> int:
    return max(claim.numbers)


def _is_failure(end: Settled | Reclaimed) -> bool:
    return isinstance(end, Reclaimed) or end.event is Event.RETRY


def _is_no_failure(end: Settled | Reclaimed) -> bool:
    return isinstance(end, Settled) and end.event in _NO_FAILURE


RULES: Final[tuple[Rule, ...]] = (
    origin,
    numbering,
    exclusion,
    ending,
    at_most_once,
    success,
    moves,
    resting_place,
)
