"""Break a good history in one known way each, as a broken store would. Knows only the checker's kinds.

A corruption gives None where the history has nothing to break.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from fairlane.lab.history import ViolationKind
from fairlane.lab.ledger import (
    Acknowledged,
    Attempted,
    Bound,
    Ceiling,
    Counted,
    Due,
    Ended,
    Enqueue,
    Fired,
    Found,
    JobEvent,
    Opened,
    Paid,
    Permitted,
    Reading,
    Reclaimed,
    Record,
    Released,
    Settled,
    Started,
)
from fairlane.model.lifecycle.states import Event, Home, State
from tests.lab.history.histories import reading

History: TypeAlias = list[Record]
Corruption: TypeAlias = Callable[[History], History | None]
T = TypeVar("T", bound=Record)

CORRUPTIONS: list[tuple[ViolationKind, Corruption]] = []


def breaks(kind: ViolationKind) -> Callable[[Corruption], Corruption]:
    """Register a corruption under the kind of violation that it must cause."""

    def listed(corruption: Corruption) -> Corruption:
        CORRUPTIONS.append((kind, corruption))
        return corruption

    return listed


# ── looking around in a history ──────────────────────────────────────────────


def all_of(history: History, kind: type[T], **facts: Any) -> list[T]:
    """Return the records of a type that state these facts."""
    return [
        one
        for one in history
        if isinstance(one, kind) and all(getattr(one, name) == value for name, value in facts.items())
    ]


def first(found: list[T]) -> T | None:
    """Return the first, if any."""
    return found[0] if found else None


def instead(history: History, old: Record, *new: Record) -> History:
    """Replace one record by others, and count the homes again."""
    at = history.index(old)
    return read_again([*history[:at], *new, *history[at + 1 :]])


def read_again(history: History) -> History:
    """Let the reading count the current rows."""
    rest = [one for one in history if not isinstance(one, Reading)]
    return [*rest, reading(rest)]


def unbounded(history: History) -> History:
    """Remove the limits and the reading of what was spent, where a corruption would also exceed one."""
    return [one for one in history if not isinstance(one, Bound | Ceiling | Counted)]


def row_of(history: History, job: str) -> Found:
    """Return the row of a job that was found."""
    return all_of(history, Found, job=job)[0]


def succeeded(history: History) -> Settled | None:
    """Return an accepted success whose start is recorded."""
    return first(
        [
            end
            for end in all_of(history, Settled, state=State.SUCCEEDED)
            if all_of(history, Started, job=end.job, fence=end.fence)
        ]
    )


def reruns(history: History, end: type[Settled | Reclaimed]) -> list[tuple[Settled | Reclaimed, Started]]:
    """Return ends after which the job ran again, each with its next start; both starts are recorded."""
    pairs = []
    for one in all_of(history, end):
        starts = all_of(history, Started, job=one.job)
        later = [start for start in starts if start.fence > one.fence and start.at > one.at]
        if later and any(start.fence == one.fence and start.at < one.at for start in starts):
            pairs.append((one, min(later, key=lambda start: start.fence)))
    return pairs


# ── existence ────────────────────────────────────────────────────────────────


@breaks(ViolationKind.LOST)
def a_row_vanishes(history: History) -> History | None:
    """An acknowledged job is in no home."""
    known = first(all_of(history, Acknowledged, created=True))
    return instead(history, row_of(history, known.job)) if known else None


@breaks(ViolationKind.DOUBLED_HOME)
def the_move_to_history_forgets_the_hot_row(history: History) -> History | None:
    """A job is in two homes."""
    row = first(all_of(history, Found, home=Home.HISTORY))
    return instead(history, row, row, replace(row, home=Home.HOT, state=State.RUNNING)) if row else None


@breaks(ViolationKind.UNEXPECTED)
def a_job_comes_from_nowhere(history: History) -> History | None:
    """The store has a job that was never sent."""
    row = first(all_of(history, Found))
    rest = [one for one in history if not (isinstance(one, Enqueue) and row and one.job == row.job)]
    return unbounded(rest) if row else None


@breaks(ViolationKind.CREATED_TWICE)
def a_repeat_makes_the_job_again(history: History) -> History | None:
    """The store confirmed twice that it created the job."""
    known = first(all_of(history, Acknowledged, created=True))
    return [*history, replace(known, at=known.at + 1)] if known else None


@breaks(ViolationKind.KEY_DOUBLED)
def a_key_is_checked_before_it_is_stored(history: History) -> History | None:
    """Two jobs have one idempotency key."""
    known = all_of(history, Acknowledged, created=True, tenant="acme", batch=None)
    return [replace(one, key="same") if one in known else one for one in history] if len(known) > 1 else None


@breaks(ViolationKind.TORN_BATCH)
def half_a_batch_is_stored(history: History) -> History | None:
    """A batch of unknown outcome is stored in part."""
    known = first(all_of(history, Acknowledged, created=True, batch=None))
    if known is None:
        return None
    absent = Attempted(job="absent", tenant="acme", queue="mail", task="do", at=1, batch="half")
    return [*instead(history, known, replace(known, batch="half")), absent]


@breaks(ViolationKind.TENANT_CROSSED)
def a_handler_sees_another_tenant(history: History) -> History | None:
    """A job ran for a tenant that did not send it."""
    start = first(all_of(history, Started))
    return instead(history, start, replace(start, tenant="mallory")) if start else None


def fired(known: Acknowledged) -> Fired:
    """Return the same enqueue as that of a schedule's slot."""
    return Fired(
        job=known.job,
        tenant=known.tenant,
        queue=known.queue,
        task=known.task,
        gate=known.gate,
        at=known.at,
        schedule="nightly",
        slot=3_600,
    )


@breaks(ViolationKind.SLOT_DOUBLED)
def two_schedulers_fire_one_slot(history: History) -> History | None:
    """A slot made two jobs."""
    known = all_of(history, Acknowledged, created=True, tenant="acme", batch=None)[:2]
    for one in known:
        history = instead(history, one, fired(one))
    return history if len(known) > 1 else None


@breaks(ViolationKind.SLOT_MISSED)
def no_scheduler_fires_a_slot(history: History) -> History | None:
    """A slot that was due made no job."""
    due = Due(job="due", tenant="acme", queue="mail", task="do", at=1, schedule="nightly", slot=3_600)
    return [*history, due]


# ── claims ───────────────────────────────────────────────────────────────────


@breaks(ViolationKind.FENCE_REUSED)
def a_claim_is_handed_out_twice(history: History) -> History | None:
    """Two workers got one fence."""
    start = first(all_of(history, Started))
    return [*history, replace(start, worker="w2", pid=8)] if start else None


def renumbered(history: History, start: Started, **new: Any) -> History:
    """Change the number or the fence of one claim wherever it is recorded."""
    return [
        replace(one, **new)
        if isinstance(one, Started | Ended | Settled | Reclaimed)
        and (one.job, one.fence) == (start.job, start.fence)
        and all(hasattr(one, name) for name in new)
        else one
        for one in history
    ]


@breaks(ViolationKind.FENCE_REUSED)
def a_fence_does_not_grow(history: History) -> History | None:
    """A later attempt has a lower fence."""
    pairs = reruns(history, Settled)
    if not pairs:
        return None
    end, later = pairs[0]
    return renumbered(unbounded(history), later, fence=end.fence - 1) if end.fence > 1 else None


@breaks(ViolationKind.ATTEMPT_REUSED)
def a_lost_claim_gives_its_number_back(history: History) -> History | None:
    """Two claims are of one attempt."""
    pairs = reruns(history, Reclaimed)
    if not pairs:
        return None
    end, later = pairs[0]
    before = all_of(history, Started, job=end.job, fence=end.fence)[0]
    between = [one for one in all_of(history, Settled, job=end.job) if end.fence < one.fence < later.fence]
    return renumbered(history, later, attempt=before.attempt) if not between else None


@breaks(ViolationKind.TWO_LIVE_CLAIMS)
def a_claim_is_replaced_before_it_is_reclaimed(history: History) -> History | None:
    """The old claim was still there to be taken back when the new one ran."""
    pairs = reruns(history, Reclaimed)
    if not pairs:
        return None
    end, later = pairs[0]
    return instead(unbounded(history), end, replace(end, at=later.at + 1))


@breaks(ViolationKind.STALE_ACCEPTED)
def a_reclaimed_claim_still_settles(history: History) -> History | None:
    """The fence is not compared."""
    pairs = reruns(history, Reclaimed)
    if not pairs:
        return None
    end, later = pairs[0]
    start = all_of(history, Started, job=end.job, fence=end.fence)[0]
    late = Settled(
        job=end.job,
        attempt=start.attempt,
        fence=end.fence,
        event=Event.RETRY,
        state=State.DELAYED,
        at=later.at + 1,
    )
    return [*history, late]


@breaks(ViolationKind.STALE_ACCEPTED)
def a_replaced_claim_still_settles(history: History) -> History | None:
    """The fence is not compared, and the reclaim was not recorded."""
    pairs = reruns(history, Settled)
    if not pairs:
        return None
    end, later = pairs[0]
    return instead(history, end, replace(end, at=later.at + 1))


@breaks(ViolationKind.SETTLED_TWICE)
def a_settlement_is_accepted_twice(history: History) -> History | None:
    """One claim has two ends."""
    end = first(all_of(history, Settled))
    return [*history, end] if end else None


def once_more(history: History, end: Settled) -> History:
    """Let a job's row count one more attempt."""
    row = row_of(history, end.job)
    return instead(history, row, replace(row, attempt=row.attempt + 1))


@breaks(ViolationKind.SETTLED_TWICE)
def a_finished_job_is_settled_again(history: History) -> History | None:
    """An end follows the end."""
    end = succeeded(history)
    if end is None:
        return None
    again = replace(end, attempt=end.attempt + 1, fence=end.fence + 1, event=Event.FAIL, state=State.DEAD)
    return unbounded([*once_more(history, end), again])


@breaks(ViolationKind.RAN_AGAIN)
def a_finished_job_runs_again(history: History) -> History | None:
    """A start follows the end."""
    end = succeeded(history)
    if end is None:
        return None
    again = Started(
        job=end.job, attempt=end.attempt + 1, fence=end.fence + 1, worker="w2", pid=8, at=end.at + 1
    )
    return [*once_more(unbounded(history), end), again]


@breaks(ViolationKind.RAN_AGAIN)
def a_lost_job_that_may_run_once_runs_again(history: History) -> History | None:
    """At most once was promised."""
    pairs = reruns(history, Reclaimed)
    if not pairs:
        return None
    job = pairs[0][0].job
    return [
        replace(one, once=True) if isinstance(one, Enqueue) and one.job == job else one for one in history
    ]


@breaks(ViolationKind.NEVER_RAN)
def a_job_succeeds_unseen(history: History) -> History | None:
    """No handler ever started."""
    end = succeeded(history)
    if end is None:
        return None
    return [one for one in history if not (isinstance(one, Started | Ended) and one.job == end.job)]


@breaks(ViolationKind.FALSE_SUCCESS)
def a_failure_is_settled_as_success(history: History) -> History | None:
    """The handler raised."""
    end = succeeded(history)
    if end is None:
        return None
    left = all_of(history, Ended, job=end.job, fence=end.fence)[0]
    return instead(history, left, replace(left, outcome="raised"))


@breaks(ViolationKind.RAN_UNSTARTED)
def what_ran_goes_back_as_unstarted(history: History) -> History | None:
    """Its attempt would be given again, as if nothing had happened."""
    for end in all_of(history, Settled, unstarted=True):
        if not all_of(history, Started, job=end.job, fence=end.fence):
            sent = all_of(history, Attempted, job=end.job)[0]
            began = Started(
                job=end.job,
                attempt=end.attempt,
                fence=end.fence,
                worker="w1",
                pid=7,
                tenant=sent.tenant,
                at=end.at,
            )
            return unbounded([began, *history])
    return None


@breaks(ViolationKind.ILLEGAL_MOVE)
def a_retry_leads_to_ready(history: History) -> History | None:
    """The table knows no such move."""
    end = first(all_of(history, Settled, event=Event.RETRY, state=State.DELAYED))
    return instead(history, end, replace(end, state=State.READY)) if end else None


# ── limits and the end ───────────────────────────────────────────────────────


def cloned(history: History, queue: str) -> History | None:
    """Run five more jobs at the same times as one."""
    sent = {one.job for one in all_of(history, Attempted, queue=queue, tenant="acme")}
    ends = [one for one in all_of(history, Settled, state=State.SUCCEEDED) if one.job in sent]
    end = first(
        [
            one
            for one in ends
            if any(start.at < one.at for start in all_of(history, Started, job=one.job, fence=one.fence))
        ]
    )
    if end is None:
        return None
    own = [one for one in history if isinstance(one, JobEvent) and one.job == end.job]
    more = [
        replace(
            one,
            job=f"clone-{number}",
            **({"key": None, "batch": None} if isinstance(one, Attempted | Acknowledged) else {}),
        )
        for number in range(5)
        for one in own
    ]
    return read_again([*history, *more])


@breaks(ViolationKind.LIMIT_EXCEEDED)
def claims_are_counted_before_they_are_made(history: History) -> History | None:
    """More run at once than the tenant may have."""
    without: History = [one for one in history if not isinstance(one, Ceiling | Counted)]
    return cloned(without, "mail")


@breaks(ViolationKind.LIMIT_EXCEEDED)
def a_gate_lets_all_in(history: History) -> History | None:
    """More run at once than the gate lets in."""
    return cloned(history, "screens")


@breaks(ViolationKind.RATE_EXCEEDED)
def a_rate_is_not_kept(history: History) -> History | None:
    """More start at once than the burst."""
    return cloned(history, "paced")


@breaks(ViolationKind.CEILING_EXCEEDED)
def a_budget_is_read_before_it_is_reserved(history: History) -> History | None:
    """Two start where there is room for one."""
    told: History = [Ceiling(budget="mail", ceiling=5, estimate=3)]
    for number, job in enumerate(("first", "second")):
        told.append(Acknowledged(job=job, tenant="acme", queue="side", task="do", at=1, budget="mail"))
        told.append(Started(job=job, attempt=1, fence=5, worker="w1", pid=90 + number, at=3 + number))
        told.append(Found(job=job, home=Home.HOT, state=State.RUNNING, attempt=1, failures=0))
    return read_again([*history, *told])


@breaks(ViolationKind.SPEND_DOUBLED)
def a_sum_is_added_to_an_earlier_one(history: History) -> History | None:
    """More is counted than handlers have spent."""
    row = max(all_of(history, Counted), key=lambda one: one.spent)
    most = sum(one.total + 3 for one in all_of(history, Paid)) + 5 * len(all_of(history, Found)) * 8
    return instead(history, row, replace(row, spent=row.spent + most)) if row.spent else None


@breaks(ViolationKind.SPEND_LOST)
def a_settlement_does_not_spend(history: History) -> History | None:
    """What was reported and accepted is not counted."""
    paid = [one for one in all_of(history, Settled) if one.spent]
    if not paid:
        return None
    sent = all_of(history, Attempted, job=paid[0].job)[0]
    row = all_of(history, Counted, tenant=sent.tenant)[0]
    return instead(history, row, replace(row, spent=0))


def probed(*fences: int) -> History:
    """Open a breaker, and let jobs pass it, each for a long time."""
    told: History = [Opened(breaker="mail", at=10, until=20)]
    for fence in fences:
        job = f"probe-{fence}"
        told.append(Acknowledged(job=job, tenant="acme", queue="side", task="do", at=1, breaker="mail"))
        told.append(Permitted(job=job, fence=fence, breaker="mail", at=fence))
        told.append(Released(job=job, fence=fence, breaker="mail", at=fence + 50, passed=True))
        told.append(Found(job=job, home=Home.HOT, state=State.RUNNING, attempt=1, failures=0))
    return told


@breaks(ViolationKind.PASSED_OPEN)
def a_probe_goes_too_early(history: History) -> History | None:
    """One passes before its time."""
    return read_again([*history, *probed(15)])


@breaks(ViolationKind.PROBE_DOUBLED)
def two_probes_go_at_once(history: History) -> History | None:
    """Two ask at the same time, and both are the first."""
    return read_again([*history, *probed(30, 31)])


@breaks(ViolationKind.WRONG_HOME)
def a_job_is_in_the_home_of_others(history: History) -> History | None:
    """A succeeded job is a dead letter."""
    row = first(all_of(history, Found, home=Home.HISTORY))
    return instead(history, row, replace(row, home=Home.DEAD)) if row else None


@breaks(ViolationKind.WRONG_HOME)
def an_accepted_success_is_forgotten(history: History) -> History | None:
    """The store lost a state that it had accepted."""
    end = succeeded(history)
    if end is None:
        return None
    row = row_of(history, end.job)
    return instead(history, row, replace(row, home=Home.HOT, state=State.READY))


@breaks(ViolationKind.MISCOUNTED)
def an_attempt_is_not_counted(history: History) -> History | None:
    """The row counts fewer attempts than were seen."""
    start = first(all_of(history, Started))
    if start is None:
        return None
    row = row_of(history, start.job)
    return instead(history, row, replace(row, attempt=start.attempt - 1, failures=0))


@breaks(ViolationKind.MISCOUNTED)
def a_lost_claim_is_no_crash(history: History) -> History | None:
    """The row counts fewer crashes than were seen."""
    condemned = {one.job for one in all_of(history, Reclaimed, state=State.DEAD)}
    lost = first([one for one in all_of(history, Reclaimed) if one.job not in condemned])
    row = row_of(history, lost.job) if lost else None
    return instead(history, row, replace(row, crashes=0)) if row else None


@breaks(ViolationKind.MISCOUNTED)
def a_lost_claim_costs_an_attempt(history: History) -> History | None:
    """The row counts every attempt as a failure, though one was lost."""
    lost = first(all_of(history, Reclaimed))
    row = row_of(history, lost.job) if lost else None
    return instead(history, row, replace(row, failures=row.attempt)) if row else None


@breaks(ViolationKind.CONDEMNED)
def a_neighbour_of_a_crash_is_dead(history: History) -> History | None:
    """One loss ends a job that may run more than once."""
    known = Acknowledged(job="near", tenant="acme", queue="mail", task="do", at=1)
    lost = Reclaimed(job="near", fence=5, state=State.DEAD, at=2)
    row = Found(job="near", home=Home.DEAD, state=State.DEAD, attempt=1, failures=0, crashes=1)
    return read_again([*history, known, lost, row])


@breaks(ViolationKind.NOT_ALONE)
def a_suspect_runs_among_others(history: History) -> History | None:
    """A job whose claim was lost starts again in a process where another job runs."""
    told: History = []
    for job, fence, attempt in (("suspect", 6, 2), ("beside", 7, 1)):
        told.append(Acknowledged(job=job, tenant="acme", queue="side", task="do", at=1))
        told.append(Started(job=job, attempt=attempt, fence=fence, worker="w1", pid=99, at=3 + fence))
        told.append(Ended(job=job, attempt=attempt, fence=fence, outcome="returned", at=20 + fence))
        row = Found(job=job, home=Home.HOT, state=State.RUNNING, attempt=attempt, failures=0)
        told.append(replace(row, crashes=attempt - 1))
    lost = Reclaimed(job="suspect", fence=5, state=State.READY, at=2)
    return read_again([*history, lost, *told])


@breaks(ViolationKind.NOT_DRAINED)
def a_job_is_forgotten(history: History) -> History | None:
    """A job waits for ever."""
    known = Acknowledged(job="forgotten", tenant="acme", queue="mail", task="do", at=1)
    row = Found(job="forgotten", home=Home.HOT, state=State.READY, attempt=0, failures=0)
    return read_again([*history, known, row])


@breaks(ViolationKind.UNREAD)
def the_reading_is_cut_short(history: History) -> History | None:
    """A row was counted but not recorded."""
    row = first(all_of(history, Found))
    return [one for one in history if one is not row] if row else None


@breaks(ViolationKind.UNREAD)
def nobody_reads(history: History) -> History | None:
    """There is no reading."""
    return [one for one in history if not isinstance(one, Reading | Found)]
