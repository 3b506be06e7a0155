"""Whether a new job comes in: the checks one by one, and their order for every pair of them (S15)."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any
from uuid import UUID

import pytest

from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import (
    Admission,
    AdmissionFacts,
    Admitted,
    KeyHolder,
    Refusal,
    RefusalKind,
    Repeat,
    admit,
    linked_to_dead,
)
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.policy.limits import Limits
from fairlane.model.scope import SYSTEM

ID, FIRST, HOLDER, DEDUP = (UUID(int=number) for number in range(1, 5))
PRINT = b"task and arguments"


def new(**values: Any) -> NewJob:
    """Build a job that uses both kinds of key."""
    given = {"id": ID, "tenant": "acme", "queue": "bulk", "task": "t", "payload": b"", "checksum": 0}
    return NewJob(**{**given, "fingerprint": PRINT, **values})


def decided(standing: dict[str, Any], *, repeated: bool = False, **values: Any) -> Admission:
    """Decide on a job in this standing."""
    return admit(3, new(**values), AdmissionFacts(**standing), repeated=repeated)


def spoken(answer: Admission) -> str:
    """Name the check that decided."""
    match answer:
        case Refusal():
            return answer.kind.value
        case Repeat():
            return f"repeat of {answer.existing.int}"
        case Admitted():
            return "admitted" if answer.over is None else "over"


# In the order of S15. Each check with the standing in which it speaks, and what it says.
CHECKS: list[tuple[str, dict[str, Any], str]] = [
    ("tenancy", {"is_tenant_known": False}, "unknown_tenant"),
    ("closed", {"closed": "queue bulk: moving"}, "closed"),
    ("foreign id", {"is_id_foreign": True}, "id_taken"),
    ("same id", {"same_id": FIRST}, "id_taken"),
    ("other arguments", {"same_key": KeyHolder(HOLDER, b"other")}, "idempotency_mismatch"),
    ("same key", {"same_key": KeyHolder(HOLDER, PRINT)}, f"repeat of {HOLDER.int}"),
    ("de-duplication", {"same_dedup": DEDUP}, f"repeat of {DEDUP.int}"),
    ("queue total", {"queue_waiting": 9, "max_waiting": 9}, "queue_full"),
    ("waiting limit", {"waiting": 5, "limits": Limits(waiting=5, on_full="reject")}, "waiting_limit"),
]
PAIRS = [
    pytest.param(first, second, id=f"{first[0]} before {second[0]}")
    for first, second in combinations(CHECKS, 2)
    if not first[1].keys() & second[1].keys()
]


@pytest.mark.parametrize(("name", "standing", "says"), CHECKS)
def test_each_check_speaks_when_it_alone_has_cause(name: str, standing: dict[str, Any], says: str) -> None:
    """One cause, one answer."""
    assert spoken(decided(standing)) == says


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_any_two_checks_with_cause_the_earlier_speaks(
    first: tuple[str, dict[str, Any], str], second: tuple[str, dict[str, Any], str]
) -> None:
    """Tenancy, closed, id, idempotency, de-duplication, queue total, waiting limit."""
    assert spoken(decided(first[1] | second[1])) == first[2]
    assert spoken(decided(second[1] | first[1])) == first[2]


def test_every_pair_of_neighbours_is_among_them() -> None:
    """The order is pinned without a gap, but for two answers of one check."""
    pinned = {(pair.values[0][0], pair.values[1][0]) for pair in PAIRS}  # type: ignore[index]
    neighbours = {(one[0], other[0]) for one, other in pairwise(CHECKS)}
    assert neighbours - pinned == {("other arguments", "same key")}


def test_a_job_without_any_cause_comes_in() -> None:
    """Nothing known, nothing closed, nothing full."""
    assert decided({}) == Admitted()
    assert decided({"limits": Limits(waiting=1, on_full="reject"), "max_waiting": 1}) == Admitted()


# ── repeats ──────────────────────────────────────────────────────────────────


def test_an_enqueue_that_is_marked_as_repeated_is_answered_by_its_own_job() -> None:
    """Before keys and limits: a repeat never counts against a limit."""
    full = {"queue_waiting": 9, "max_waiting": 9, "same_key": KeyHolder(ID, b"other")}
    assert decided({"same_id": ID, **full}, repeated=True) == Repeat(ID)


def test_an_id_that_is_taken_is_refused_unless_marked_as_repeated() -> None:
    """With the job that has it."""
    assert decided({"same_id": FIRST}) == Refusal(3, RefusalKind.ID_TAKEN, "acme", "bulk", existing=FIRST)


@pytest.mark.parametrize("repeated", [True, False])
def test_an_id_of_another_tenant_is_refused_without_a_word_about_it(repeated: bool) -> None:
    """Even if marked as repeated: nothing of the foreign job is shown."""
    found = decided({"is_id_foreign": True}, repeated=repeated)
    assert found == Refusal(3, RefusalKind.ID_TAKEN, "acme", "bulk")


def test_a_repeated_enqueue_whose_first_did_not_arrive_is_a_new_one() -> None:
    """The mark changes nothing if the id is not there."""
    assert decided({}, repeated=True) == Admitted()


@pytest.mark.parametrize(
    ("on_duplicate", "fingerprint", "says"),
    [
        ("return", PRINT, f"repeat of {HOLDER.int}"),
        ("raise", PRINT, "duplicate"),
        ("return", b"other", "idempotency_mismatch"),
        ("raise", b"other", "idempotency_mismatch"),
    ],
)
def test_a_used_idempotency_key_returns_the_first_job_or_raises(
    on_duplicate: str, fingerprint: bytes, says: str
) -> None:
    """The first job by default, an error where asked for, and always if task or arguments differ (S13)."""
    found = decided({"same_key": KeyHolder(HOLDER, fingerprint)}, on_duplicate=on_duplicate)
    assert spoken(found) == says
    if isinstance(found, Refusal):
        assert found.existing == HOLDER


@pytest.mark.parametrize(
    ("on_duplicate", "is_dead", "found"),
    [
        ("replace_dead", True, Admitted(replaces=HOLDER)),
        ("replace_dead", False, Repeat(HOLDER)),
        ("return", True, Repeat(HOLDER)),
        ("raise", True, Refusal(3, RefusalKind.DUPLICATE, "acme", "bulk", existing=HOLDER)),
    ],
)
def test_a_dead_job_is_replaced_where_asked_for(on_duplicate: str, is_dead: bool, found: Admission) -> None:
    """And nothing else is (S13)."""
    holder = KeyHolder(HOLDER, PRINT, is_dead)
    assert decided({"same_key": holder}, on_duplicate=on_duplicate) == found


@pytest.mark.parametrize(
    ("standing", "says"),
    [
        ({"same_dedup": DEDUP}, f"repeat of {DEDUP.int}"),
        ({"queue_waiting": 9, "max_waiting": 9}, "queue_full"),
        ({"waiting": 5, "limits": Limits(waiting=5, on_full="reject")}, "waiting_limit"),
        ({"waiting": 5, "limits": Limits(waiting=5)}, "over"),
    ],
)
def test_what_replaces_a_dead_job_is_a_new_job_for_all_checks_behind(
    standing: dict[str, Any], says: str
) -> None:
    """S15: de-duplication and limits apply as usual."""
    dead = KeyHolder(HOLDER, PRINT, is_dead=True)
    assert spoken(decided({"same_key": dead, **standing}, on_duplicate="replace_dead")) == says


@pytest.mark.parametrize("on_duplicate", ["return", "raise", "replace_dead"])
def test_a_key_of_its_own_answers_for_a_repeated_enqueue(on_duplicate: str) -> None:
    """S15: the job is gone, its key is left; an enqueue is no duplicate of itself."""
    own = {"same_key": KeyHolder(ID, PRINT, is_dead=True)}
    assert decided(own, repeated=True, on_duplicate=on_duplicate) == Repeat(ID)


def test_what_replaces_a_dead_job_keeps_its_correlation() -> None:
    """S13: and has its own if nothing is left of the dead one."""
    dead = new_record(new(id=HOLDER), 1)
    assert linked_to_dead(new(correlation_id="given"), dead).correlation_id == str(HOLDER)
    assert linked_to_dead(new(correlation_id="given"), None).correlation_id == "given"


def test_de_duplication_returns_the_live_job_whatever_the_arguments() -> None:
    """Its key is (tenant, task, key); it never raises (S14)."""
    assert decided({"same_dedup": DEDUP}, on_duplicate="raise", fingerprint=b"any") == Repeat(DEDUP)


@pytest.mark.parametrize("repeat", [{"same_key": KeyHolder(HOLDER, PRINT)}, {"same_dedup": DEDUP}])
def test_a_repeat_never_counts_against_a_limit(repeat: dict[str, Any]) -> None:
    """Full or not, nothing new is stored."""
    limits = Limits(waiting=0, on_full="reject")
    found = decided({**repeat, "queue_waiting": 9, "max_waiting": 0, "waiting": 9, "limits": limits})
    assert isinstance(found, Repeat)


# ── limits ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("waiting", "limit", "on_full", "says"),
    [
        (0, None, "reject", "admitted"),
        (10**9, None, "reject", "admitted"),
        (99, 100, "warn", "admitted"),
        (100, 100, "warn", "over"),
        (101, 100, "warn", "over"),
        (499, 500, "reject", "admitted"),
        (500, 500, "reject", "waiting_limit"),
        (0, 0, "reject", "waiting_limit"),
        (0, 0, "warn", "over"),
    ],
)
def test_the_job_after_the_limit_is_the_first_to_warn_or_to_be_refused(
    waiting: int, limit: int | None, on_full: Any, says: str
) -> None:
    """Seed A: the 101st of bulk warns, the 501st of default is refused if the policy says so (S16, S17)."""
    found = decided({"waiting": waiting, "limits": Limits(waiting=limit, on_full=on_full)})
    assert spoken(found) == says
    if isinstance(found, Admitted) and says == "over":
        assert found.over == limit
    if isinstance(found, Refusal):
        assert (found.index, found.tenant, found.queue) == (3, "acme", "bulk")
        assert (found.waiting, found.limit) == (waiting, limit)


@pytest.mark.parametrize(
    ("queue_waiting", "max_waiting", "says"),
    [
        (0, None, "admitted"),
        (8, 9, "admitted"),
        (9, 9, "queue_full"),
        (10, 9, "queue_full"),
        (0, 0, "queue_full"),
    ],
)
def test_a_full_queue_refuses_everyone(queue_waiting: int, max_waiting: int | None, says: str) -> None:
    """Over all tenants together, whatever the policy of each (S18)."""
    standing = {"queue_waiting": queue_waiting, "max_waiting": max_waiting}
    found = decided({**standing, "limits": Limits(waiting=500, on_full="warn")})
    assert spoken(found) == says
    if isinstance(found, Refusal):
        assert (found.waiting, found.limit) == (queue_waiting, max_waiting)


def test_the_system_tenant_has_no_waiting_limit_but_shares_the_queues_total() -> None:
    """The application's own work is never refused for its own number (S8)."""
    limits = Limits(waiting=1, on_full="reject")
    assert decided({"waiting": 50, "limits": limits}, tenant=SYSTEM) == Admitted()
    assert spoken(decided({"queue_waiting": 9, "max_waiting": 9}, tenant=SYSTEM)) == "queue_full"


def test_a_closed_subject_is_named_with_its_reason() -> None:
    """What the error shows."""
    found = decided({"closed": "task t: broken since noon"})
    assert isinstance(found, Refusal)
    assert found.detail == "task t: broken since noon"


def test_earlier_items_of_a_batch_are_counted_by_the_store() -> None:
    """The decision takes the count as it stands: the third of three is over a limit of two."""
    limits = Limits(waiting=2, on_full="reject")
    answers = [spoken(decided({"waiting": before, "limits": limits})) for before in range(3)]
    assert answers == ["admitted", "admitted", "waiting_limit"]
