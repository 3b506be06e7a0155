"""What a lane does next and who starts next, decided from its slots, what waits and the time. No store."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from fairlane import Lane, Share
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ClaimReply, ClaimRequest
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.attempts.unknown_tasks import UNKNOWN_TASK
from fairlane.worker.lane_state import (
    UNTIL_WOKEN,
    FillSlots,
    HandBack,
    LaneAction,
    LaneState,
    PendingSettlement,
    SettleOnly,
    Wait,
)

NOW: Micros = 100 * SECOND
SLOTS = 4
AGO: Micros = 5_000


def attempt(tenant: str = "acme", claimed_at: Micros = NOW, started_at: Micros = 0) -> LiveAttempt:
    """Make an attempt of which a lane looks only at its tenant and its times."""
    job = SimpleNamespace(queue="default", tenant=tenant, task="noop", id=UUID(int=0))
    made = LiveAttempt(cast("Any", SimpleNamespace(job=job)), UNKNOWN_TASK, cast("Any", None), 0)
    made.claimed_at, made.started_at = claimed_at, started_at
    return made


def lane(
    *,
    running: int = 0,
    waiting: int = 0,
    waiting_for: Micros = 0,
    pending: int = 0,
    pending_for: Micros = 0,
    may_have_work: bool = False,
    due_at: Micros | None = None,
    in_flight: int = 0,
    reserved: int = 0,
    concurrent_calls: int = 1,
    headroom: int = 0,
    prefetch: int | None = None,
    run_time: Micros | None = None,
    running_for: Micros = AGO,
) -> LaneState:
    """Make a lane of four slots as a test wants it. With a `run_time` it knows round trips of 10 ms."""
    policy = Lane("main", SLOTS, ["default"], headroom=headroom, prefetch=prefetch)
    made = LaneState(policy, concurrent_calls)
    for _ in range(running):
        made.slots.occupy(attempt(), NOW - running_for)
    for _ in range(waiting):
        made.enqueue(attempt(claimed_at=NOW - waiting_for))
    for _ in range(pending):
        made.settle(PendingSettlement(attempt(), cast("Any", None)), NOW - pending_for)
    made.may_have_work = may_have_work
    made.due_at = due_at
    made.calls_in_flight = in_flight
    made._reserved = reserved
    if run_time is not None:
        made.look_ahead.round_trip_took(10_000)
        made.look_ahead.handler_took("default", "noop", run_time)
    return made


FULL = SLOTS
NOTHING = Wait(UNTIL_WOKEN)
MS = 1_000
HINT = {"may_have_work": True}
SHORT = {"may_have_work": True, "run_time": 2 * MS}
"""A lane of handlers of 2 ms: four slots start 20 of them in a round trip of 10 ms, 100 in 50 ms."""

TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], LaneAction]] = {
    # name: (the lane, how it is asked, what it does)
    "idle": ({}, {}, NOTHING),
    "a hint came": (HINT, {}, FillSlots(4)),
    "a hint came, some slots are taken": ({**HINT, "running": 3}, {}, FillSlots(1)),
    "a hint came, every slot is taken": ({**HINT, "running": FULL}, {}, NOTHING),
    "a job is over": ({"running": 3, "pending": 1}, {}, FillSlots(1)),
    "a job is over and nothing was found before": ({"pending": 1}, {}, FillSlots(4)),
    "the next job is due later": ({"due_at": NOW + 7}, {}, Wait(7)),
    "the next job is due now": ({"due_at": NOW}, {}, FillSlots(4)),
    "the next job is due, every slot is taken": ({"due_at": NOW - 1, "running": FULL}, {}, NOTHING),
    "the next job is due later, a hint came": ({**HINT, "due_at": NOW + 7}, {}, FillSlots(4)),
    "after an outage": ({**HINT, "pending": 2}, {"not_before": NOW + 5}, Wait(5)),
    "the pause after an outage is over": (HINT, {"not_before": NOW}, FillSlots(4)),
    "draining": (HINT, {"is_draining": True}, NOTHING),
    "draining, a job is over": ({"running": 2, "pending": 1}, {"is_draining": True}, SettleOnly()),
    "draining, a job is due": ({"due_at": NOW}, {"is_draining": True}, NOTHING),
    "draining, a call is in flight": ({"pending": 1, "in_flight": 1}, {"is_draining": True}, NOTHING),
    "draining, jobs wait": ({"waiting": 1, "in_flight": 1}, {"is_draining": True}, HandBack()),
    "a call is in flight, others may follow": (
        {"pending": 1, "in_flight": 1, "running": 1},
        {},
        FillSlots(3),
    ),
    "what a call may bring has its slots": ({**HINT, "reserved": 3}, {}, FillSlots(1)),
    "half of the slots go with each of two calls": ({**HINT, "concurrent_calls": 2}, {}, FillSlots(2)),
    # headroom
    "the last slots are for whoever runs nothing": ({**HINT, "headroom": 1}, {}, FillSlots(4, 0, 1)),
    "only they are left": ({**HINT, "headroom": 1, "running": 3}, {}, FillSlots(1, 0, 1)),
    "half of the slots leave the last ones alone": (
        {**HINT, "headroom": 1, "concurrent_calls": 2},
        {},
        FillSlots(2, 0, 0),
    ),
    "the other half has them": (
        {**HINT, "headroom": 1, "concurrent_calls": 2, "reserved": 2},
        {},
        FillSlots(2, 0, 1),
    ),
    # ahead
    "short jobs are claimed ahead": (SHORT, {}, FillSlots(4, 20)),
    "also while every slot is taken": ({**SHORT, "running": FULL}, {}, FillSlots(0, 20)),
    "not if that is turned off": ({**SHORT, "prefetch": 0}, {}, FillSlots(4)),
    "not more than asked for": ({**SHORT, "prefetch": 3}, {}, FillSlots(4, 3)),
    "not more than asked for in all": ({**SHORT, "prefetch": 3, "reserved": 6}, {}, FillSlots(0, 1)),
    "no jobs that take as long as a round trip": ({**HINT, "run_time": 10 * MS}, {}, FillSlots(4)),
    "enough waits for a round trip": ({**SHORT, "running": FULL, "waiting": 21}, {}, Wait(100 * MS)),
    "less waits": ({**SHORT, "running": FULL, "waiting": 20}, {}, FillSlots(0, 20)),
    "nothing waits, and a call is in flight": (
        {**SHORT, "running": FULL, "reserved": 30},
        {},
        FillSlots(0, 20),
    ),
    "no more than 50 ms of work": ({**SHORT, "running": FULL, "reserved": 95}, {}, FillSlots(0, 5)),
    "that much is on its way": ({**SHORT, "running": FULL, "reserved": 100}, {}, NOTHING),
    "the last slots are not claimed for": ({**SHORT, "headroom": 1}, {}, FillSlots(3, 20)),
    "the other slots are free soon": ({**SHORT, "headroom": 1, "running": 3}, {}, FillSlots(0, 20)),
    "they are held by long jobs": (
        {**SHORT, "headroom": 1, "running": 3, "running_for": 11 * MS},
        {},
        FillSlots(1, 0, 1),
    ),
    # what waits
    "a job over, others wait: it goes along later": (
        {"running": FULL, "waiting": 1, "pending": 1, "pending_for": 4 * MS},
        {},
        Wait(6 * MS),
    ),
    "a job was over long ago": (
        {"running": FULL, "waiting": 1, "pending": 1, "pending_for": 10 * MS},
        {},
        SettleOnly(),
    ),
    "nothing to do until what waits must go back": (
        {"running": FULL, "waiting": 2, "waiting_for": 70 * MS},
        {},
        Wait(30 * MS),
    ),
    "it must go back": ({"running": FULL, "waiting": 2, "waiting_for": 100 * MS}, {}, HandBack()),
    "it must go back during an outage": (
        {"running": FULL, "waiting": 2, "waiting_for": 100 * MS},
        {"not_before": NOW + 5},
        HandBack(),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_a_lane_does_next(case: str) -> None:
    """One row of the table."""
    state, asked, expected = TABLE[case]
    assert lane(**state).next_action(NOW, **asked) == expected


@pytest.mark.parametrize("case", TABLE)
def test_deciding_changes_nothing(case: str) -> None:
    """It may be asked as often as one likes."""
    state, asked, _ = TABLE[case]
    made = lane(**state)
    before = {name: value for name, value in vars(made).items() if not name.startswith("_clock")}
    made.next_action(NOW, **asked)
    assert {name: value for name, value in vars(made).items() if not name.startswith("_clock")} == before


def test_a_call_in_flight_reserves_the_slots_that_it_may_fill() -> None:
    """Two calls never ask for the same slot, and what was found missing is not asked for twice."""
    made = lane(may_have_work=True, due_at=NOW, concurrent_calls=2)
    with made.call_in_flight(claiming=2):
        assert made.next_action(NOW) == NOTHING
        made.look_for_work()
        assert made.next_action(NOW) == FillSlots(2)
        with made.call_in_flight(claiming=2):
            made.look_for_work()
            assert made.next_action(NOW) == NOTHING
    assert made.next_action(NOW) == FillSlots(2)


def test_a_job_whose_handler_has_ended_has_no_slot() -> None:
    """S47: its settlement travels, and the slot is filled again."""
    made = lane(may_have_work=True)
    one = attempt()
    made.slots.occupy(one, NOW)
    assert (made.slots.free, made.next_action(NOW)) == (3, FillSlots(3))
    made.settle(PendingSettlement(one, cast("Any", None)), NOW)
    assert (made.slots.free, made.next_action(NOW)) == (4, FillSlots(4))
    made.vacate(one)
    assert made.slots.free == 4, "a slot is freed once"


@pytest.mark.parametrize("way", ["settled", "lost while it ran", "never started"])
def test_a_claim_counts_against_its_queue_once_and_no_longer_than_it_may(way: str) -> None:
    """S49: for `max_slots`; a count that falls too far would let a queue have more."""
    made = lane()
    one = attempt()
    made.take([one.claim], NOW)
    assert (made.claimed, made._claimed_by_queue["default"]) == (1, 1)
    if way != "never started":
        made.slots.occupy(one, NOW)
    if way == "settled":
        made.settle(PendingSettlement(one, cast("Any", None)), NOW)
    made.release(one)
    assert (made.claimed, made._claimed_by_queue["default"], made.slots.free) == (0, 0, SLOTS)


# ── who starts next ──────────────────────────────────────────────────────────


def starts(made: LaneState) -> str:
    """Start all that may, and return whose jobs they are."""
    found = []
    while (one := made.next_to_start(NOW)) is not None:
        made.slots.occupy(one, NOW)
        found.append(one.claim.job.tenant)
    return "".join(found)


@pytest.mark.parametrize(
    ("headroom", "running", "waiting", "expected"),
    [
        (0, "", "aabbcc", "aabb"),
        (1, "", "aaaa", "aaa"),
        (1, "", "aaab", "aaab"),
        (1, "", "aaaab", "aaab"),
        (1, "b", "aaaab", "aa"),
        (1, "aaa", "aab", "b"),
        (1, "aaa", "aabb", "b"),
        (2, "", "aaaabbcd", "aabc"),
        (2, "aa", "aaa", ""),
        (2, "aa", "aabbc", "bc"),
        (2, "abcd", "e", ""),
    ],
)
def test_the_last_slots_start_only_tenants_with_nothing_running(
    headroom: int, running: str, waiting: str, expected: str
) -> None:
    """S48, S68: in the order claimed; who is held up by it delays nobody behind."""
    made = lane(headroom=headroom)
    for tenant in running:
        made.slots.occupy(attempt(tenant), NOW)
    for tenant in waiting:
        made.enqueue(attempt(tenant))
    assert starts(made) == expected
    assert made.slots.waiting == len(waiting) - len(expected)


def test_a_tenant_whose_last_handler_has_ended_may_have_the_last_slots() -> None:
    """S48: it counts what runs here."""
    made = lane(headroom=1)
    one, *rest = (attempt("b"), *(attempt("a") for _ in range(3)))
    for each in (one, *rest):
        made.slots.occupy(each, NOW)
    for tenant in "abb":
        made.enqueue(attempt(tenant))
    assert starts(made) == ""
    made.vacate(one)
    assert starts(made) == "b"


@pytest.mark.parametrize(
    ("headroom", "running", "waiting", "expected"),
    [
        (0, "abcd", "ef", "e"),
        (1, "aaa", "ab", "a"),
        (1, "aaab", "aac", "c"),
        (1, "aaab", "aab", ""),
        (1, "abbb", "cb", "c"),
        (1, "aaa", "", ""),
    ],
)
def test_a_slot_is_passed_on_only_to_what_may_start_in_it(
    headroom: int, running: str, waiting: str, expected: str
) -> None:
    """S48: the thread of a plain handler that has ended chooses as the loop does."""
    made = lane(headroom=headroom)
    attempts = [attempt(tenant) for tenant in running]
    for one in attempts:
        made.slots.occupy(one, NOW)
    for tenant in waiting:
        made.enqueue(attempt(tenant))
    free = made.slots.free
    following = made.pass_on(attempts[0], NOW, lambda _: True)
    assert (following.claim.job.tenant if following else "") == expected
    assert made.slots.free == free + (not expected)
    assert made.pass_on(attempts[0], NOW, lambda _: True) is None, "its slot is another's by now"
    made.settle(PendingSettlement(attempts[0], cast("Any", None)), NOW)
    assert attempts[0].is_counted_out


@pytest.mark.parametrize(("concurrent_calls", "work"), [(1, 10_000), (2, 50_000)])
def test_a_claim_of_a_store_in_this_process_takes_less_ahead(concurrent_calls: int, work: int) -> None:
    """S68: else a long claim would ask for a longer one, and a newcomer would wait for both."""
    made = LaneState(Lane("main", SLOTS, ["default"]), concurrent_calls)
    made.look_ahead.round_trip_took(90_000)
    made.look_ahead.handler_took("default", "work", 4_000)
    assert made.look_ahead.jobs == work * SLOTS // 4_000


def test_what_may_not_start_in_a_thread_keeps_its_place() -> None:
    """The loop starts it, or hands it back."""
    made = lane()
    ended, first, second = attempt("a"), attempt("b"), attempt("c")
    made.slots.occupy(ended, NOW)
    made.enqueue(first)
    made.enqueue(second)
    assert made.pass_on(ended, NOW, lambda one: one is second) is None
    assert (made.slots.oldest, made.slots.waiting) == (first, 2)


def test_random_histories_keep_the_books() -> None:
    """However attempts come, start, end and leave, the counts of flows are those of a recount."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    made, running = lane(headroom=2), list[LiveAttempt]()
    for _ in range(3_000):
        match rng.randrange(5):
            case 0 | 1:
                made.enqueue(attempt(rng.choice("abcd")))
            case 2:
                one = made.next_to_start(NOW)
                if one is not None:
                    made.slots.occupy(one, NOW)
                    running.append(one)
            case 3 if running:
                made.vacate(running.pop(rng.randrange(len(running))))
            case _ if made.slots._waiting and rng.random() < 0.5:
                made.slots.leave(rng.choice(list(made.slots._waiting)))
        flows = {one.claim.job.tenant for one in made.slots._waiting}
        idle = flows - {one.claim.job.tenant for one in made.slots.running}
        assert made.slots._idle_flows_waiting == len(idle)
        assert made.slots.free == SLOTS - len(running)
    left = made.slots.waiting
    assert len(made.take_waiting()) == left
    assert (made.slots.waiting, made.slots._idle_flows_waiting) == (0, 0)


# ── jobs that may not be claimed ahead ───────────────────────────────────────


def test_after_a_cut_some_claims_do_not_look_ahead() -> None:
    """S68: one, then ever more, until a claim ahead is whole again."""
    made = lane(may_have_work=True, run_time=2 * MS)
    for without in (1, 2, 4, 8, 16, 32, 64, 64):
        answer(made, 24, 10, ahead=20, is_cut=True)
        for _ in range(without):
            assert made.next_action(NOW) == FillSlots(4)
            answer(made, 4, 4)
        assert made.next_action(NOW) == FillSlots(4, 20)
    answer(made, 24, 24, ahead=20)
    answer(made, 24, 0, ahead=20, is_cut=True)
    answer(made, 4, 4)
    assert made.next_action(NOW) == FillSlots(4, 20)


# ── whether there is more ────────────────────────────────────────────────────


def answer(
    made: LaneState,
    total: int,
    came: int,
    *,
    headroom: int = 0,
    ahead: int = 0,
    is_cut: bool = False,
    is_partial: bool = False,
    finds: int | None = None,
) -> bool:
    """Answer a claim of so many with so many; return whether the lane looks for more."""
    asked = ClaimRequest(
        scope=Scope.all(),
        worker="w",
        lease=SECOND,
        queue_requests=(),
        total=total,
        headroom=headroom,
        ahead=ahead,
    )
    reply = ClaimReply((cast("Any", None),) * came, None, is_partial, is_cut)
    made.may_have_work = False
    made.claim_answered(asked, reply, made._finds if finds is None else finds)
    return made.may_have_work


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ({"total": 4, "came": 4}, True),
        ({"total": 4, "came": 3}, False),
        ({"total": 4, "came": 0}, False),
        ({"total": 4, "came": 1, "is_partial": True}, True),
        ({"total": 4, "came": 0, "ahead": 2, "is_cut": True}, True),
        ({"total": 4, "came": 3, "headroom": 1}, False),
        ({"total": 2, "came": 1, "headroom": 1}, True),
        ({"total": 2, "came": 0, "headroom": 2}, False),
    ],
)
def test_a_lane_looks_for_more_as_long_as_a_claim_does_not_prove_that_there_is_none(
    answered: dict[str, Any], expected: bool
) -> None:
    """S48: short by its headroom only, it has proven nothing about the slots that it did not ask for."""
    made = lane(headroom=1, reserved=answered["total"])
    assert answer(made, **answered) is expected


def test_a_claim_that_came_back_empty_after_another_has_found_jobs_proves_nothing() -> None:
    """It may have been served before these jobs were there."""
    made = lane(concurrent_calls=2)
    with made.call_in_flight(claiming=2) as first, made.call_in_flight(claiming=2) as second:
        assert not answer(made, 2, 1, finds=second)
        assert answer(made, 2, 0, finds=first)


def test_a_lane_with_minimum_shares_does_not_look_ahead() -> None:
    """S49: they are exact for any hundred starts."""
    queues = {"first": Share(), "last": Share(min_share=0.1)}
    made = LaneState(Lane("main", SLOTS, queues, order="strict", headroom=0))
    made.look_ahead.round_trip_took(10 * MS)
    made.look_ahead.handler_took("first", "noop", MS)
    assert made.next_action(NOW) == FillSlots(4)


def test_the_pace_of_starts_is_learned_while_jobs_wait() -> None:
    """S68: 40 starts in 20 ms are one in 500 µs, which the slots alone would not show."""
    made = lane(run_time=0)
    before = made.look_ahead.jobs
    for _ in range(40):
        made.enqueue(attempt(claimed_at=NOW))
    for _ in range(10):
        for _ in range(SLOTS):
            one = made.next_to_start(NOW)
            assert one is not None
            made.slots.occupy(one, NOW)
        for one in list(made.slots.running):
            made.vacate(one)
    assert made.next_to_start(NOW + 20 * MS) is None
    assert made.look_ahead.jobs < before
