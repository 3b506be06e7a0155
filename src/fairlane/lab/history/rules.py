"""Check one job's history against the promises (S12-S15, S23, S24, S36-S40, S50, S63). Knows no other job.

Each rule is a function from a job's history to the violations that its records prove. A fault may break
several promises; each rule reports its own, and leaves out only what follows from another rule's violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from fairlane.lab.history.job_history import FOREVER, ClaimHistory, JobHistory, RunConditions
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Found, Reclaimed, Settled, Started
from fairlane.model.lifecycle.states import ENDINGS, TRANSITIONS, Event, Home, State, home, target
from fairlane.model.retry.decision import MAX_LOSSES

Rule: TypeAlias = Callable[[JobHistory, RunConditions], Iterator[Violation]]

_OVERRULED: Final[dict[Event, tuple[State, ...]]] = {
    Event.SUCCEED: (),
    Event.RETRY: (State.CANCELLED, State.DEAD),
}
"""The states that a settlement may lead to besides its target: a cancel (S30) or the expiry (S21) may win."""

_MAY_LEAD_TO: Final[dict[Event, tuple[State, ...]]] = {
    Event.LOSE: TRANSITIONS[State.RUNNING, Event.LOSE],
    **{event: (target(event), *_OVERRULED.get(event, (State.CANCELLED,))) for event in ENDINGS},
}
_WITHDRAWN: Final = (State.CANCELLED, State.DEAD)
_NO_FAILURE: Final = (Event.SUCCEED, Event.SNOOZE, Event.HAND_BACK)


def origin(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a job that nobody enqueued, that was created twice, or that changed its tenant."""
    job = history.job
    started = list(_starts(history.claims))
    if not history.enqueues and (history.exists or history.claims):
        proof = {*history.evidence, *started, *history.found}
        yield make_violation(
            ViolationKind.UNEXPECTED, job, f"job {job} is there, but nobody enqueued it", *proof
        )
    made = [record for record in history.acknowledged if record.created]
    if len(made) > 1:
        yield make_violation(
            ViolationKind.CREATED_TWICE, job, f"job {job} was newly made {len(made)} times", *made
        )
    everything = (*history.enqueues, *history.repeats, *started, *history.found)
    tenants = {record.tenant: record for record in everything if record.tenant is not None}
    if len(tenants) > 1:
        description = f"job {job} belongs to {' and to '.join(sorted(tenants))}"
        yield make_violation(ViolationKind.TENANT_CROSSED, job, description, *tenants.values())


def numbering(history: JobHistory, conditions: RunConditions) -> Iterator[Violation]:
    """Find fences that were reused or did not grow, and attempt numbers that did not rise (S24, S36)."""
    job = history.job
    by_fence = sorted(history.claims, key=lambda claim: claim.fence)
    numbered = [(claim, claim.numbers) for claim in by_fence if claim.numbers]
    for claim, numbers in numbered:
        if len(numbers) > 1 or len(claim.started) > 1:
            description = f"job {job} was handed out more than once under fence {claim.fence}"
            yield make_violation(ViolationKind.FENCE_REUSED, job, description, *claim.numbered)
    for (lower, was), (higher, now) in pairwise(numbered):
        # An outage may lose a claim with its number; the fence comes from the clock and still grows.
        if max(now) > max(was) or conditions.had_outage(lower.seen_at, higher.seen_at):
            continue
        kind = ViolationKind.ATTEMPT_REUSED if max(now) == max(was) else ViolationKind.FENCE_REUSED
        description = (
            f"job {job} has fence {lower.fence} for attempt {max(was)} "
            f"and fence {higher.fence} for attempt {max(now)}"
        )
        yield make_violation(kind, job, description, *lower.numbered, *higher.numbered)


def exclusion(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a claim that changed something, or was live, after it had been reclaimed or replaced."""
    job = history.job
    for index, claim in enumerate(history.claims):
        later = history.claims[index + 1 :]
        if claim.is_stale:
            why = "it had been reclaimed" if claim.reclaimed else "a later claim had started"
            description = f"a settlement of job {job} under fence {claim.fence} was accepted although {why}"
            yield make_violation(ViolationKind.STALE_ACCEPTED, job, description, *claim.ends, *_starts(later))
        if any(record.at > claim.next_start_at for record in claim.reclaimed):
            description = (
                f"fence {claim.fence} of job {job} was reclaimed only after a later claim had started"
            )
            yield make_violation(
                ViolationKind.TWO_LIVE_CLAIMS, job, description, *claim.reclaimed, *_starts(later)
            )


def _starts(claims: list[ClaimHistory]) -> Iterator[Started]:
    return (record for claim in claims for record in claim.started)


def _first_finish(history: JobHistory) -> ClaimHistory | None:
    return next((claim for claim in history.claims if claim.finishes and not claim.is_stale), None)


def ending(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find an attempt that ended twice, and anything that follows the end of a job (S23, S63)."""
    job, finish = history.job, _first_finish(history)
    for claim in history.claims:
        if max(len(claim.settled), len(claim.reclaimed)) > 1:
            description = f"fence {claim.fence} of job {job} was ended {len(claim.ends)} times"
            yield make_violation(ViolationKind.SETTLED_TWICE, job, description, *claim.ends)
    finishes = finish.finishes if finish else []
    for claim in history.claims[history.claims.index(finish) + 1 :] if finish else []:
        after = f"under fence {claim.fence} after it was {finishes[0].state} under an earlier one"
        if claim.started:
            yield make_violation(
                ViolationKind.RAN_AGAIN, job, f"job {job} started {after}", *finishes, *claim.started
            )
        if claim.ends:
            yield make_violation(
                ViolationKind.SETTLED_TWICE, job, f"job {job} was settled {after}", *finishes, *claim.ends
            )
    if history.withdrawn and len(history.withdrawn) + len(finishes) > 1:
        description = (
            f"job {job} was ended {len(history.withdrawn) + len(finishes)} times, not always under a claim"
        )
        yield make_violation(ViolationKind.SETTLED_TWICE, job, description, *history.withdrawn, *finishes)


def at_most_once(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a job of an at-most-once task that ran again after a lost claim (S63)."""
    if not any(record.once for record in history.enqueues):
        return
    for lower, higher in pairwise(history.starts):
        if lower.reclaimed:
            description = (
                f"job {history.job} runs at most once, but started again after fence {lower.fence} was lost"
            )
            yield make_violation(
                ViolationKind.RAN_AGAIN,
                history.job,
                description,
                *lower.started,
                *lower.reclaimed,
                *higher.started,
            )


def success(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a success whose handler did not start, or raised."""
    job = history.job
    for claim in history.claims:
        claimed = [record for record in claim.settled if record.state is State.SUCCEEDED]
        if claimed and not claim.started:
            description = (
                f"job {job} was settled as succeeded under fence {claim.fence}, but no handler started"
            )
            yield make_violation(ViolationKind.NEVER_RAN, job, description, *claimed)
        if claimed and claim.ended and all(record.outcome == "raised" for record in claim.ended):
            description = (
                f"job {job} was settled as succeeded under fence {claim.fence}, but its handler raised"
            )
            yield make_violation(ViolationKind.FALSE_SUCCESS, job, description, *claimed, *claim.ended)


def unstarted(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a claim that was handed back as unstarted after its handler had started (S68)."""
    for claim in history.claims:
        ends = [record for record in claim.settled if record.unstarted]
        started = [one for one in claim.started if any(one.at <= end.at for end in ends)]
        if started:
            description = (
                f"job {history.job} went back as unstarted under fence {claim.fence}, but its handler ran"
            )
            yield make_violation(ViolationKind.RAN_UNSTARTED, history.job, description, *started, *ends)


def moves(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a state that no transition of the table leads to (S23)."""
    for end in (end for claim in history.claims for end in claim.ends):
        event = end.event if isinstance(end, Settled) else Event.LOSE
        if end.state not in _MAY_LEAD_TO.get(event, ()):
            description = f"{event} of job {history.job} under fence {end.fence} led to {end.state}"
            yield make_violation(ViolationKind.ILLEGAL_MOVE, history.job, description, end)
    for out in history.withdrawn:
        if out.state not in _WITHDRAWN:
            yield make_violation(
                ViolationKind.ILLEGAL_MOVE,
                history.job,
                f"waiting job {history.job} was ended as {out.state}",
                out,
            )


def resting_place(history: JobHistory, conditions: RunConditions) -> Iterator[Violation]:
    """Require the job in exactly one home at the end, the home of its state (S50)."""
    job, rows = history.job, history.found
    if len(rows) > 1:
        homes = " and ".join(sorted(row.home for row in rows))
        yield make_violation(
            ViolationKind.DOUBLED_HOME, job, f"job {job} was read {len(rows)} times: in {homes}", *rows
        )
    elif rows:
        yield from _placed(history, rows[0])
        yield from _counted(history, rows[0], conditions)
        if conditions.is_drained and rows[0].home is Home.HOT:
            yield make_violation(ViolationKind.NOT_DRAINED, job, f"job {job} is still {rows[0].state}", *rows)
    elif history.evidence and history.enqueues and conditions.is_read:
        how = "was acknowledged" if history.acknowledged else "ran, though nobody knew it was accepted"
        yield make_violation(
            ViolationKind.LOST,
            job,
            f"job {job} {how}, and is in no home",
            *(history.acknowledged or history.evidence),
        )


def _placed(history: JobHistory, row: Found) -> Iterator[Violation]:
    """Compare the final state with its home and with the ends that were accepted."""
    job = history.job
    if row.home is not home(row.state):
        yield make_violation(
            ViolationKind.WRONG_HOME, job, f"job {job} is {row.state}, but in {row.home}", row
        )
        return
    accepted = [*history.withdrawn, *(end for claim in history.claims for end in claim.finishes)]
    is_accepted = any(end.state is row.state for end in accepted)
    if not is_accepted and (history.withdrawn or _first_finish(history)):
        description = f"job {job} is {row.state}, but was accepted as {accepted[0].state}"
        yield make_violation(ViolationKind.WRONG_HOME, job, description, *accepted, row)
    elif not is_accepted and row.state is State.SUCCEEDED:
        if not history.starts:
            yield make_violation(
                ViolationKind.NEVER_RAN, job, f"job {job} succeeded, but no handler ever started", row
            )
        elif all(claim.ends for claim in history.starts):
            ends = [end for claim in history.starts for end in claim.ends]
            description = f"job {job} succeeded, but each attempt that started ended otherwise"
            yield make_violation(ViolationKind.WRONG_HOME, job, description, *ends, row)


def _counted(history: JobHistory, row: Found, conditions: RunConditions) -> Iterator[Violation]:
    """Compare the job's counters with its records; unrecorded attempts may have raised them further (S24)."""
    job = history.job
    seen = max((claim for claim in history.claims if claim.numbers), key=_highest, default=None)
    if seen and row.attempt < _highest(seen) and not conditions.had_outage(seen.seen_at, FOREVER):
        description = f"job {job} counts {row.attempt} attempts, but attempt {_highest(seen)} was seen"
        yield make_violation(ViolationKind.MISCOUNTED, job, description, *seen.numbered, row)
    failed = [claim for claim in history.claims if claim.ends and all(map(_is_failure, claim.ends))]
    counted = [claim for claim in history.claims if claim.ends and not claim.is_unstarted]
    spared = [claim for claim in counted if all(map(_is_no_failure, claim.ends))]
    if not len(failed) <= row.failures <= row.attempt - len(spared):
        description = (
            f"job {job} counts {row.failures} failures in {row.attempt} attempts, "
            f"but {len(failed)} certainly failed and {len(spared)} certainly did not"
        )
        ends = [end for claim in (*failed, *spared) for end in claim.ends]
        yield make_violation(ViolationKind.MISCOUNTED, job, description, *ends, row)
    losses = [end for claim in history.claims for end in claim.reclaimed[:1]]
    if row.crashes is not None and row.crashes < len(losses):
        description = f"job {job} counts {row.crashes} crashes, but lost {len(losses)} claims"
        yield make_violation(ViolationKind.MISCOUNTED, job, description, *losses, row)


def innocence(history: JobHistory, _: RunConditions) -> Iterator[Violation]:
    """Find a job that is dead because its worker was lost, before that happened too often (S39, S40)."""
    if any(record.once for record in history.enqueues):
        return
    rows = [row for row in history.found if row.crashes is not None and row.crashes < MAX_LOSSES]
    ends = [end for claim in history.claims for end in claim.reclaimed if end.state is State.DEAD]
    if rows and ends:
        description = f"job {history.job} is dead by a lost claim, but had {rows[0].crashes} crashes"
        yield make_violation(ViolationKind.CONDEMNED, history.job, description, *ends, *rows)


def _highest(claim: ClaimHistory) -> int:
    return max(claim.numbers)


def _is_failure(end: Settled | Reclaimed) -> bool:
    return isinstance(end, Settled) and end.event is Event.RETRY


def _is_no_failure(end: Settled | Reclaimed) -> bool:
    return isinstance(end, Reclaimed) or end.event in _NO_FAILURE


RULES: Final[tuple[Rule, ...]] = (
    origin,
    numbering,
    exclusion,
    ending,
    at_most_once,
    success,
    unstarted,
    moves,
    innocence,
    resting_place,
)
