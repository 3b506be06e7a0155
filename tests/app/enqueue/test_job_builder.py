"""Every malformed option is reported, all in one error, before the store is asked (S2-S12, S15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from itertools import repeat
from typing import Any
from uuid import UUID

import pytest

from fairlane import (
    Backoff,
    Call,
    Fairlane,
    InvalidJob,
    PayloadTooLarge,
    Problem,
    Queue,
    SensitivePayload,
    Task,
    Tasks,
    TenantRequired,
    UnknownTask,
)
from fairlane.model.instants import LAST_INSTANT, SECOND, to_datetime
from tests.app.world import World, note

LAST_MOMENT = to_datetime(LAST_INSTANT)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Colour(Enum):
    """Known to nobody's annotations."""

    RED = 1


def nested(depth: int) -> Any:
    """Put a list into a list into a list."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def declare(app: Fairlane) -> Task[..., None]:
    """Register the handler with this application."""
    return app.task(name="note")(note)


OPTIONS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    # S3, names:
    ({"tenant": ""}, [("tenant", "name")]),
    ({"tenant": "has space"}, [("tenant", "name")]),
    ({"tenant": "a" * 129}, [("tenant", "name")]),
    ({"tenant": "-acme"}, [("tenant", "name")]),
    ({"tenant": 7}, [("tenant", "name")]),
    ({"queue": "Bulk"}, [("queue", "name")]),
    ({"queue": "q" * 64}, [("queue", "name")]),
    ({"queue": "nowhere"}, [("queue", "unknown_queue")]),
    ({"idempotency_key": ""}, [("idempotency_key", "name")]),
    ({"idempotency_key": "ä" * 128}, [("idempotency_key", "name")]),
    ({"dedup_key": "tab\there"}, [("dedup_key", "name")]),
    ({"correlation_id": "\ud800"}, [("correlation_id", "name")]),
    ({"correlation_id": 7}, [("correlation_id", "name")]),
    ({"created_by": ""}, [("created_by", "name")]),
    ({"tags": ["fine", "", "x" * 256]}, [("tags[1]", "name"), ("tags[2]", "name")]),
    ({"tags": [1]}, [("tags[0]", "name")]),
    ({"tags": "one"}, [("tags", "type")]),
    ({"tags": 5}, [("tags", "type")]),
    # S2 and S21, times:
    ({"run_at": datetime(2030, 1, 1)}, [("run_at", "naive")]),  # noqa: DTZ001 (it is about that)
    ({"run_at": LAST_MOMENT + timedelta(microseconds=1)}, [("run_at", "range")]),
    ({"expires_at": datetime(9999, 1, 1, tzinfo=UTC)}, [("expires_at", "range")]),
    ({"expires_at": datetime(2030, 1, 1)}, [("expires_at", "naive")]),  # noqa: DTZ001
    ({"run_at": 5}, [("run_at", "type")]),
    ({"run_at": NOON, "delay": 5}, [("run_at", "conflict")]),
    ({"expires_at": NOON, "expires_in": 5}, [("expires_at", "conflict")]),
    ({"run_at": NOON, "expires_at": NOON}, [("expires_at", "conflict")]),
    ({"delay": 10, "expires_in": 10}, [("expires_in", "conflict")]),
    ({"delay": -1}, [("delay", "range")]),
    ({"delay": timedelta(microseconds=-1)}, [("delay", "range")]),
    ({"delay": float("nan")}, [("delay", "range")]),
    ({"delay": float("inf")}, [("delay", "range")]),
    ({"delay": 10**400}, [("delay", "range")]),
    ({"delay": "5"}, [("delay", "type")]),
    ({"delay": True}, [("delay", "type")]),
    ({"expires_in": 0}, [("expires_in", "range")]),
    # S19 and others, numbers:
    ({"priority": 101}, [("priority", "range")]),
    ({"priority": -101}, [("priority", "range")]),
    ({"priority": True}, [("priority", "range")]),
    ({"priority": 1.5}, [("priority", "range")]),
    ({"max_attempts": 0}, [("max_attempts", "range")]),
    ({"max_attempts": 1001}, [("max_attempts", "range")]),
    ({"max_attempts": "3"}, [("max_attempts", "range")]),
    ({"timeout": 0.5}, [("timeout", "range")]),
    ({"timeout": 86_401}, [("timeout", "range")]),
    ({"timeout": "60"}, [("timeout", "type")]),
    # the rest:
    ({"parent": "no-uuid"}, [("parent", "type")]),
    ({"on_duplicate": "ignore"}, [("on_duplicate", "type")]),
    ({"metadata": {"at": NOON}}, [("metadata.at", "metadata")]),
    ({"metadata": {"a": [1, {"b": {1, 2}}]}}, [("metadata.a[1].b", "metadata")]),
    ({"metadata": {"a": float("nan"), "b": 2**63}}, [("metadata.a", "metadata"), ("metadata.b", "metadata")]),
    ({"metadata": {1: "a"}}, [("metadata", "metadata")]),
    ({"metadata": {"t": (1, 2)}}, [("metadata.t", "metadata")]),
    ({"metadata": {"a": "\ud800"}}, [("metadata.a", "metadata")]),
    ({"metadata": [1]}, [("metadata", "metadata")]),
    ({"metadata": {"a": nested(40)}}, [("metadata.a" + "[0]" * 32, "metadata")]),
    # several at once:
    (
        {"tenant": "a b", "delay": -1, "priority": 500, "tags": [""], "metadata": {"x": object()}},
        [
            ("tenant", "name"),
            ("delay", "range"),
            ("tags[0]", "name"),
            ("metadata.x", "metadata"),
            ("priority", "range"),
        ],
    ),
]


@pytest.mark.parametrize(("options", "expected"), OPTIONS)
def test_a_bad_option_is_refused_with_field_and_hint_and_the_store_is_not_asked(
    world: World, options: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """One error with all that is wrong."""
    task = declare(world.app())
    with pytest.raises(InvalidJob) as caught:
        task.using(**options).enqueue("fine")
    problems = caught.value.problems
    assert sorted((one.field, one.code) for one in problems) == sorted(expected)
    assert all(one.index == 0 and one.message and one.hint for one in problems)
    assert world.asked == []
    assert world.opened == 0


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"delay": -1}, "use 0 s to 3153600000 s"),
        ({"expires_in": 0}, "use more than 0 s to 3153600000 s"),
        ({"timeout": 0}, "use 1 s to 86400 s"),
        ({"priority": 101}, "use a whole number, -100 to 100"),
    ],
)
def test_a_hint_does_not_advise_what_was_refused(world: World, options: dict[str, Any], hint: str) -> None:
    """Whoever follows it gets through."""
    with pytest.raises(InvalidJob) as caught:
        declare(world.app()).using(**options).enqueue("x")
    assert [one.hint for one in caught.value.problems] == [hint]


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
DEEP = nested(40)

PAYLOADS: list[tuple[Any, str, str]] = [
    (float("nan"), "arguments.text", "payload"),
    (float("-inf"), "arguments.text", "payload"),
    (2**63, "arguments.text", "payload"),
    ("\ud800", "arguments.text", "payload"),
    ({1: "a"}, "arguments.text", "payload"),
    ([0, {"rows": [object()]}], "arguments.text[1].rows[0]", "payload"),
    (datetime(2030, 1, 1), "arguments.text", "payload"),  # noqa: DTZ001
    (Decimal("NaN"), "arguments.text", "payload"),
    (Colour.RED, "arguments.text", "payload"),
    ("x" * 1_048_577, "arguments", "too_large"),
]


@pytest.mark.parametrize(("value", "field", "code"), PAYLOADS, ids=lambda value: str(value)[:30])
def test_an_argument_that_cannot_be_stored_is_refused_with_its_path(
    world: World, value: Any, field: str, code: str
) -> None:
    """S5: what would not come back as itself is named, and nothing is sent."""
    task = declare(world.app(payload={"sensitive": "allow"}))
    with pytest.raises(InvalidJob) as caught:
        task.enqueue(value)
    (problem,) = caught.value.problems
    assert (problem.field, problem.code) == (field, code)
    assert problem.hint
    assert isinstance(caught.value, PayloadTooLarge) == (code == "too_large")
    assert world.asked == []


@pytest.mark.parametrize("value", [DEEP, ENDLESS])
def test_an_argument_nested_too_deep_is_refused(world: World, value: Any) -> None:
    """S5: also when it contains itself."""
    with pytest.raises(InvalidJob, match="nested more than 32 deep"):
        declare(world.app(payload={"sensitive": "allow"})).enqueue(value)
    assert world.asked == []


def test_what_is_said_for_one_call_holds_for_no_other_of_its_batch(world: World) -> None:
    """Options that many calls share are judged once; each still has its own."""
    app = world.app()
    acme = declare(app).using(tenant="acme", queue="default")
    urgent = acme.using(priority=9)
    calls = [
        acme.bind("a"),
        urgent.using(idempotency_key="k").bind("b"),
        acme.using(tenant="globex", correlation_id="c").bind("c"),
        urgent.using(tenant="globex", tags=["t"]).bind("d"),
        urgent.using(dedup_key="d").bind("e"),
    ]
    jobs = app.enqueue_many(calls)
    assert [(job.tenant, job.priority) for job in jobs] == [
        ("acme", 0),
        ("acme", 9),
        ("globex", 0),
        ("globex", 9),
        ("acme", 9),
    ]
    assert [job.idempotency_key == "k" for job in jobs] == [False, True, False, False, False]
    assert [job.correlation_id == "c" for job in jobs] == [False, False, True, False, False]
    assert [set(job.tags) for job in jobs] == [set(), set(), set(), {"t"}, set()]
    assert [job.dedup_key for job in jobs] == [None, None, None, None, "d"]


def test_all_bad_fields_of_all_bad_items_stand_in_one_error(world: World) -> None:
    """S12: a batch is refused whole, with every problem by index and field."""
    app = world.app(tenancy="required")
    task = declare(app)
    fine = task.using(tenant="acme")
    calls = [
        fine.bind("fine"),
        fine.using(delay=-1, priority=101).bind(object()),
        task.bind("no tenant"),
        fine.bind("also fine"),
        fine.using(tenant="a b", queue="nowhere").bind("fine", other=float("nan")),
    ]
    with pytest.raises(InvalidJob) as caught:
        app.enqueue_many(calls)
    assert type(caught.value) is InvalidJob
    assert [(one.index, one.field) for one in caught.value.problems] == [
        (1, "delay"),
        (1, "priority"),
        (1, "arguments.text"),
        (2, "tenant"),
        (4, "tenant"),
        (4, "queue"),
        (4, "arguments.other"),
    ]
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
    assert world.asked == []


@pytest.mark.parametrize("tenancy", ["required", "declared"])
def test_an_enqueue_without_a_tenant_is_refused_unless_tenancy_is_open(world: World, tenancy: str) -> None:
    """S7, S10: the narrow error, since all problems are of its kind."""
    app = world.app(tenancy=tenancy)
    task = declare(app)
    with pytest.raises(TenantRequired) as caught:
        app.enqueue_many([task.bind("a"), task.bind("b")])
    assert [(one.index, one.field, one.code) for one in caught.value.problems] == [
        (0, "tenant", "tenant_required"),
        (1, "tenant", "tenant_required"),
    ]
    assert world.asked == []


def test_a_secret_is_refused_where_the_policy_says_so_and_never_shown(world: World) -> None:
    """S6: the path and the reason, not the value."""
    task = declare(world.app(payload={"sensitive": "reject"}))
    with pytest.raises(SensitivePayload) as caught:
        task.enqueue({"password": "hunter2-is-secret"})
    (problem,) = caught.value.problems
    assert (problem.index, problem.field, problem.code) == (0, "arguments.text.password", "sensitive")
    assert "hunter2" not in str(caught.value)
    assert world.asked == []


def test_a_tasks_own_sensitive_names_count(world: World) -> None:
    """What the task calls sensitive is treated so."""
    app = world.app(payload={"sensitive": "reject"})
    task = app.task(name="note", sensitive=["shoe_size"])(note)
    with pytest.raises(SensitivePayload):
        task.enqueue({"shoe_size": "43"})
    assert world.asked == []


def endless(call: Call[Any]) -> Iterator[Call[Any]]:
    """Never stop."""
    return repeat(call)


@pytest.mark.parametrize("many", [lambda call: [call] * 1001, endless])
def test_more_than_a_thousand_jobs_are_refused(world: World, many: Callable[[Call[Any]], Any]) -> None:
    """S12: also when the iterable has no end."""
    app = world.app()
    with pytest.raises(PayloadTooLarge) as caught:
        app.enqueue_many(many(declare(app).bind("x")))
    (problem,) = caught.value.problems
    assert (problem.index, problem.field) == (1000, "batch")
    assert world.asked == []


def test_a_thousand_jobs_are_accepted(world: World) -> None:
    """S12: the limit itself fits."""
    app = world.app()
    jobs = app.enqueue_many([declare(app).bind("x")] * 1000)
    assert len({job.id for job in jobs}) == len(world.stored()) == 1000


def test_more_than_sixteen_megabytes_in_all_are_refused(world: World) -> None:
    """S12: each payload fits, together they do not; the first job too many is named."""
    app = world.app(payload={"sensitive": "allow"})
    call = declare(app).bind("x" * 1_000_000)
    with pytest.raises(PayloadTooLarge) as caught:
        app.enqueue_many([call] * 17)
    (problem,) = caught.value.problems
    assert (problem.index, problem.field, problem.code) == (16, "batch", "too_large")
    assert world.asked == []


def test_metadata_and_tags_count_towards_the_size_of_a_payload(world: World) -> None:
    """They are stored with it."""
    task = declare(world.app(payload={"max_size": 1_000, "sensitive": "allow"}))
    assert task.enqueue("x" * 900).created
    with pytest.raises(PayloadTooLarge):
        task.using(metadata={"a": "y" * 100}).enqueue("x" * 900)
    with pytest.raises(PayloadTooLarge):
        task.using(tags=["y" * 100]).enqueue("x" * 900)


def test_an_empty_batch_asks_nobody(world: World) -> None:
    """There is nothing to store and nothing to say."""
    assert world.app().enqueue_many([]) == []
    assert world.asked == []


@pytest.mark.parametrize("thing", [None, "call", note])
def test_what_is_no_call_is_refused_by_its_index(world: World, thing: Any) -> None:
    """A task or a function in a batch is a mistake that deserves a hint."""
    app = world.app()
    with pytest.raises(InvalidJob) as caught:
        app.enqueue_many([declare(app).bind("x"), thing])
    (problem,) = caught.value.problems
    assert (problem.index, problem.field, problem.code) == (1, "call", "type")
    assert "bind" in problem.hint
    assert world.asked == []


def test_a_call_of_another_applications_task_is_refused(world: World) -> None:
    """Its handler is unknown here, whatever it is called."""
    app, other = world.app(), world.app()
    declare(app)
    with pytest.raises(UnknownTask) as caught:
        app.enqueue_many([declare(other).bind("x")])
    assert caught.value.problems[0].field == "task"
    assert world.asked == []


@pytest.mark.parametrize("field", ["correlation_id", "idempotency_key"])
def test_what_the_application_requires_must_be_given(world: World, field: str) -> None:
    """Strict mode: no generated key is good enough."""
    task = declare(world.app(payload={"require": [field]}))
    with pytest.raises(InvalidJob) as caught:
        task.enqueue("x")
    assert [(one.field, one.code) for one in caught.value.problems] == [(field, "required")]
    assert world.asked == []
    options: dict[str, Any] = {field: "given"}
    assert getattr(task.using(**options).enqueue("x"), field) == "given"


def test_a_fixed_queue_cannot_be_left(world: World) -> None:
    """S11: naming the home itself changes nothing and is allowed."""
    app = world.app(fixed_queues=True, queues=[Queue("bulk")])
    task = app.task(name="note", queue="bulk")(note)
    with pytest.raises(InvalidJob) as caught:
        task.using(queue="default").enqueue("x")
    assert [(one.field, one.code) for one in caught.value.problems] == [("queue", "fixed_queue")]
    assert world.asked == []
    assert task.using(queue="bulk").enqueue("x").queue == "bulk"


def test_a_home_queue_that_is_not_declared_is_refused_where_queues_are(world: World) -> None:
    """A typing error in a decorator must not make a queue that nobody serves."""
    task = world.app(queues=[Queue("bulk")]).task(name="note", queue="blk")(note)
    with pytest.raises(InvalidJob, match="blk is not declared; declare it, or use one of: bulk, default"):
        task.enqueue("x")
    assert world.asked == []


def test_without_declared_queues_the_homes_of_tasks_are_declared(world: World) -> None:
    """So that a first application needs no list of queues."""
    app = world.app()
    bulk = app.task(name="bulky", queue="bulk")(note)
    assert bulk.enqueue("x").queue == "bulk"
    assert declare(app).using(queue="bulk").enqueue("x").queue == "bulk"


def test_a_parent_must_be_of_the_same_tenant(world: World) -> None:
    """S22: a link within one tenant; a bare id cannot be checked."""
    task = declare(world.app())
    parent = task.using(tenant="acme").enqueue("x")
    child = task.using(tenant="acme", parent=parent).enqueue("y")
    assert child.parent_id == parent.id
    assert task.using(tenant="acme", parent=parent.id).enqueue("z").parent_id == parent.id
    world.asked.clear()
    with pytest.raises(InvalidJob) as caught:
        task.using(tenant="globex", parent=parent).enqueue("y")
    assert [(one.field, one.code) for one in caught.value.problems] == [("parent", "parent")]
    assert world.asked == []


def test_a_task_declared_system_takes_no_other_tenant(world: World) -> None:
    """S8: it runs in `system`."""
    task = world.app(tenancy="required").task(name="note", system=True)(note)
    assert task.enqueue("x").tenant == "system"
    assert task.using(tenant="system").enqueue("x").tenant == "system"
    world.asked.clear()
    with pytest.raises(InvalidJob) as caught:
        task.using(tenant="acme").enqueue("x")
    assert [(one.field, one.code) for one in caught.value.problems] == [("tenant", "system_task")]
    assert world.asked == []


def test_tasks_of_no_application_cannot_be_enqueued() -> None:
    """The error says how to bring them in."""
    task = Tasks().task(name="note")(note)
    with pytest.raises(Exception, match=r"belongs to no application yet.*app\.include"):
        task.enqueue("x")


LEGAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {},
        {"tenant": "system", "queue": "default", "priority": 0, "max_attempts": 5, "timeout": 1800 * SECOND},
    ),
    ({"tenant": "a" * 128}, {"tenant": "a" * 128}),
    ({"priority": -100}, {"priority": -100}),
    ({"priority": 100}, {"priority": 100}),
    ({"max_attempts": 1000}, {"max_attempts": 1000}),
    ({"timeout": None}, {"timeout": None}),
    ({"timeout": 1}, {"timeout": SECOND}),
    ({"timeout": timedelta(days=1)}, {"timeout": 86_400 * SECOND}),
    ({"tags": ("b", "a=ä")}, {"tags": ("b", "a=ä")}),
    (
        {"metadata": {"a": [None, True, 1, 1.5, "ü", {}]}},
        {"metadata": '{"a":[null,true,1,1.5,"ü",{}]}'.encode()},
    ),
    ({"run_at": LAST_MOMENT}, {"run_at": LAST_INSTANT}),
    ({"expires_at": LAST_MOMENT}, {"expires_at": LAST_INSTANT}),
    ({"idempotency_key": "k" * 255}, {"idempotency_key": "k" * 255}),
    ({"dedup_key": "d"}, {"dedup_key": "d", "dedup_until": "settled"}),
    ({"parent": UUID(int=5)}, {"parent_id": UUID(int=5)}),
    ({"correlation_id": "c"}, {"correlation_id": "c"}),
    ({"created_by": "ann"}, {"created_by": "ann"}),
]


@pytest.mark.parametrize(("options", "expected"), LEGAL)
def test_a_legal_option_reaches_the_store(
    world: World, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Also at the very edge of what is allowed."""
    declare(world.app()).using(**options).enqueue("x")
    record = world.one()
    assert {name: getattr(record, name) for name in expected} == expected


def test_times_reach_the_store_as_they_were_meant(world: World) -> None:
    """S1, S2: absolute ones as instants, relative ones counted from the store's own now."""
    task = declare(world.app())
    start = datetime.fromtimestamp(world.clock.now() / SECOND, UTC)
    at = task.using(run_at=start + timedelta(hours=1), expires_at=start + timedelta(hours=2)).enqueue("x")
    assert (at.run_at, at.expires_at) == (start + timedelta(hours=1), start + timedelta(hours=2))
    soon = task.using(delay=1.5, expires_in=timedelta(seconds=3)).enqueue("x")
    assert (soon.run_at, soon.expires_at) == (start + timedelta(seconds=1.5), start + timedelta(seconds=3))
    past = task.using(run_at=start - timedelta(hours=1)).enqueue("x")
    assert (past.state, past.run_at) == ("ready", start)


def test_policies_come_from_the_call_then_the_task_then_the_queue(world: World) -> None:
    """S26, S31: the most specific that is given."""
    queue = Queue("slow", timeout=50, max_attempts=7)
    app = world.app(queues=[queue, Queue("listed", retry=Backoff.delays(1, 2, 3))])
    plain = app.task(name="plain", queue="slow")(note)
    own = app.task(name="own", queue="slow", timeout=20, max_attempts=3, priority=4)(note)
    delays = app.task(name="delays", queue="slow", retry=Backoff.delays(1, 2))(note)
    never = app.task(name="never", queue="slow", timeout=None, retry=Backoff.never())(note)
    listed = app.task(name="listed", queue="listed")(note)
    calls = [plain, own, own.using(timeout=9, max_attempts=2, priority=-5), delays, never, listed]
    app.enqueue_many(task.bind("x") for task in calls)
    found = [
        (job.timeout and job.timeout // SECOND, job.max_attempts, job.priority) for job in world.stored()
    ]
    assert found == [(50, 7, 0), (20, 3, 4), (9, 2, -5), (50, 3, 0), (None, 1, 0), (1800, 4, 0)]


def test_an_application_that_counts_the_other_way_sees_its_own_numbers(world: World) -> None:
    """S19: negated at the edge, both ways; stores know one direction."""
    app = world.app(priority="lower_first", priority_default=5)
    job = declare(app).enqueue("x")
    urgent = app.task(name="urgent", priority=-7)(note).enqueue("x")
    once = declare_again(app).using(priority=100).enqueue("x")
    assert (job.priority, urgent.priority, once.priority) == (5, -7, 100)
    assert [record.priority for record in world.stored()] == [-5, 7, -100]
    assert app.jobs.get(job.id).priority == 5


def declare_again(app: Fairlane) -> Task[..., None]:
    """Register the handler under another name."""
    return app.task(name="again")(note)


def test_a_fingerprint_is_only_made_for_a_given_key(world: World) -> None:
    """S13: a generated key needs none."""
    task = declare(world.app())
    task.enqueue("x")
    task.using(idempotency_key="k").enqueue("x")
    prints = [job.fingerprint for verb, request in world.asked if verb == "enqueue" for job in request.jobs]
    assert prints[0] == b""
    assert len(prints[1]) == 16


def test_arguments_are_stored_by_name_with_defaults(world: World) -> None:
    """S5: bound at the enqueue."""
    task = declare(world.app())
    task.enqueue("a")
    assert json.loads(world.one().payload)["arguments"] == {"text": "a", "other": None}


def test_a_problem_reads_as_one_line() -> None:
    """Index, field, what is wrong, what to do."""
    assert str(Problem(3, "delay", "is -1 s", "use 0 s and up")) == "[3] delay: is -1 s; use 0 s and up"
