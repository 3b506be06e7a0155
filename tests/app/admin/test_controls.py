"""`app.tenants` and `app.queues`: read, declare, override, pause, close, drain, purge, forget; and scopes."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane import (
    Closed,
    Context,
    Fairlane,
    Held,
    InsideTenant,
    InvalidJob,
    Limits,
    Overridden,
    Queue,
    Rate,
    State,
    Task,
    TenantMismatch,
)
from fairlane.app.task.context import AttemptControl
from fairlane.app.task.rules import declared_rules
from fairlane.model.instants import SECOND
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.runtime.identity import host
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.schedules import SchedulesListRequest, SchedulesWriteRequest
from tests.app.world import World, handling, note
from tests.contract.schedules.scene import put, spec
from tests.contract.schedules.scene import record as schedule

NONE = dict.fromkeys(State, 0)


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application with two queues and a tenant of its own rules, written to the store as a worker does."""
    config = {
        "tenants": {
            "*": {"limits": {"mail": {"running": 9}}},
            "acme": {"weight": 2, "labels": {"plan": "big"}, "limits": {"bulk": {"running": 8}}},
        },
    }
    queues = [Queue("bulk", limits=Limits(waiting=5, running=1), max_waiting=50, rate=Rate(9)), Queue("mail")]
    made = world.app(config=config, queues=queues)
    made.task(name="note", queue="bulk")(note)
    request = PutRequest(scope=Scope.all(), rules=declared_rules(made))
    asyncio.run(world.oracle.policies.put(request))
    return made


def enqueue(app: Fairlane, tenant: str = "acme", **options: Any) -> None:
    """Put a job into a queue."""
    app.enqueue_by_name("note", {"text": "x"}, tenant=tenant, **options)


def now(world: World) -> datetime:
    """Return the time of the store."""
    return datetime.fromtimestamp(world.clock.now() / SECOND, UTC)


# ── look ─────────────────────────────────────────────────────────────────────


def test_a_tenant_shows_what_holds_what_is_declared_and_its_counts(app: Fairlane) -> None:
    """Limits in each queue, the most specific first."""
    enqueue(app)
    enqueue(app, queue="mail")
    acme = app.tenants.get("acme")
    assert (acme.name, acme.weight, acme.labels) == ("acme", 2, {"plan": "big"})
    assert acme.limits == {
        "bulk": Limits(waiting=5, running=8),
        "default": Limits(),
        "mail": Limits(running=9),
    }
    assert acme.counts == {"bulk": {**NONE, State.READY: 1}, "mail": {**NONE, State.READY: 1}}
    assert (acme.paused, acme.closed, acme.override) == (None, None, None)
    assert acme.declared is not None
    assert acme.declared["weight"] == 2


def test_a_tenant_that_nobody_has_named_has_what_undeclared_ones_get(app: Fairlane) -> None:
    """It exists from its first job on (S7)."""
    other = app.tenants.get("other")
    assert (other.weight, other.declared, other.counts) == (1.0, None, {})
    assert other.limits["bulk"] == Limits(waiting=5, running=1)
    assert other.limits["mail"] == Limits(running=9)


def test_tenants_are_listed_in_pages_and_by_label(app: Fairlane) -> None:
    """Those that are declared and those that have jobs."""
    for name in ("b", "a", "c"):
        enqueue(app, name)
    first = app.tenants.list(limit=2)
    assert [tenant.name for tenant in first] == ["a", "acme"]
    second = app.tenants.list(limit=2, cursor=first.cursor)
    assert [tenant.name for tenant in second] == ["b", "c"]
    assert app.tenants.list(limit=2, cursor=second.cursor).items == ()
    assert [tenant.name for tenant in app.tenants.list(labels={"plan": "big"})] == ["acme"]
    assert first.items[0].counts == {"bulk": {**NONE, State.READY: 1}}
    with pytest.raises(ValueError, match="limit is 0"):
        app.tenants.list(limit=0)


def test_a_queue_shows_what_holds_and_its_counts(app: Fairlane) -> None:
    """Over all tenants."""
    enqueue(app, "a")
    enqueue(app, "b")
    bulk = app.queues.get("bulk")
    assert (bulk.name, bulk.limits, bulk.max_waiting) == ("bulk", Limits(waiting=5, running=1), 50)
    assert (bulk.rate, bulk.cost) == (Rate(9), "jobs")
    assert bulk.counts == {**NONE, State.READY: 2}
    assert bulk.declared is not None
    assert bulk.declared["max_waiting"] == 50
    assert app.queues.get("nobody-named-it").counts == NONE
    assert [queue.name for queue in app.queues.list()] == ["bulk", "default", "mail"]
    assert app.queues.list()[0] == bulk


# ── set and reset ────────────────────────────────────────────────────────────


def test_what_is_set_lies_above_and_over_what_was_set_before(world: World, app: Fairlane) -> None:
    """Each value by itself, limits by queue; who, why and since when are stored."""
    app.tenants.set("acme", weight=7, who="ops", note="sale")
    acme = app.tenants.set("acme", queue="mail", limits=Limits(running=3), who="lea", note="calm")
    assert (acme.weight, acme.limits["mail"], acme.limits["bulk"]) == (
        7,
        Limits(running=3),
        Limits(waiting=5, running=8),
    )
    assert acme.override == Overridden(
        {"weight": 7, "limits": {"mail": Limits(running=3)}}, "lea", "calm", now(world), None
    )
    acme = app.tenants.set("acme", limits=Limits(running=2))
    assert acme.limits["default"] == Limits(running=2)
    assert acme.override is not None
    assert sorted(acme.override.values["limits"]) == ["*", "mail"]
    assert acme.override.who == f"{getpass.getuser()}@{host()}"


def test_resetting_one_queue_leaves_the_rest(app: Fairlane) -> None:
    """And resetting all leaves what is declared."""
    app.tenants.set("acme", weight=7, queue="mail", limits=Limits(running=3))
    app.tenants.set("acme", queue="bulk", limits=Limits(running=4))
    acme = app.tenants.reset("acme", queue="mail")
    assert (acme.weight, acme.limits["mail"]) == (7, Limits(running=9))
    assert acme.limits["bulk"] == Limits(running=4)
    acme = app.tenants.reset("acme")
    assert (acme.weight, acme.override, acme.limits["bulk"].running) == (2, None, 8)
    app.tenants.set("acme", queue="mail", limits=Limits(running=3))
    assert app.tenants.reset("acme", queue="mail").override is None


def test_what_is_set_until_an_instant_ends_there(world: World, app: Fairlane) -> None:
    """Seen at the next look."""
    end = now(world) + timedelta(hours=1)
    assert app.tenants.set("acme", weight=7, until=end).weight == 7
    world.clock.advance(3600)
    assert app.tenants.get("acme").weight == 2


def test_one_end_holds_for_all_that_is_set(world: World, app: Fairlane) -> None:
    """Nothing may last longer, or shorter, than whoever set it meant."""
    end = now(world) + timedelta(hours=1)
    app.tenants.set("acme", weight=7, until=end, who="ops")
    with pytest.raises(ValueError, match=r"tenant acme has values set until .* by ops; give the same until="):
        app.tenants.set("acme", queue="bulk", limits=Limits(running=1))
    assert app.tenants.set("acme", queue="bulk", limits=Limits(running=1), until=end).weight == 7
    app.queues.set("bulk", max_waiting=1)
    with pytest.raises(ValueError, match="queue bulk has values set without end"):
        app.queues.set("bulk", max_waiting=2, until=end)


BAD_SETS: list[tuple[Callable[[Fairlane], object], str]] = [
    (lambda app: app.tenants.set("acme"), "nothing is set; give one of: limits, weight"),
    (lambda app: app.tenants.set("acme", weight="9"), "weight has a value of type str; give a number"),  # type: ignore[arg-type]
    (lambda app: app.tenants.set("acme", weight=True), "weight has a value of type bool"),
    (
        lambda app: app.tenants.set("acme", limits={"running": 9}),  # type: ignore[arg-type]
        "limits has a value of type dict; give Limits",
    ),
    (
        lambda app: app.tenants.set("acme", queue="Bad Q", limits=Limits()),
        "queue 'Bad Q' is not a legal name",
    ),
    (lambda app: app.tenants.purge("acme", queue="Bad Q", reason="x"), "queue 'Bad Q' is not a legal name"),
    (lambda app: app.tenants.declare("acme", weight="9"), "weight has a value of type str"),  # type: ignore[arg-type]
    (
        lambda app: app.tenants.declare("acme", labels={"plan": 5}),  # type: ignore[dict-item]
        "label 5 is not a legal name",
    ),
    (lambda app: app.tenants.list(labels=["plan"]), "labels: is of type list; give a dict of texts"),  # type: ignore[arg-type]
    (
        lambda app: app.tenants.pause("acme", reason="x", until="tomorrow"),  # type: ignore[arg-type]
        "until: is of type str; give a datetime",
    ),
    (lambda app: app.queues.set("bulk", rate=5), r"rate has a value of type int; give Rate\(\.\.\.\)"),  # type: ignore[arg-type]
    (lambda app: app.queues.set("bulk", limits=7), "limits has a value of type int"),  # type: ignore[arg-type]
    (
        lambda app: app.queues.set("bulk", max_waiting="7"),  # type: ignore[arg-type]
        "max_waiting has a value of type str; give a whole",
    ),
    (lambda app: app.tenants.set("acme", weight=0), "a weight is a number from 0.01"),
    (lambda app: app.tenants.set("acme", queue="bulk"), "queue is given without limits"),
    (lambda app: app.tenants.set("acme", weight=2, until=datetime(2030, 1, 1)), "no time zone"),  # noqa: DTZ001 (bait)
    (lambda app: app.tenants.declare("acme", weight=5000), "a weight is a number"),
    (lambda app: app.tenants.pause("acme", reason=" "), "reason is empty"),
    (lambda app: app.tenants.purge("acme", reason=""), "reason is empty"),
    (lambda app: app.tenants.forget("acme", reason=""), "reason is empty"),
    (lambda app: app.queues.set("bulk"), "nothing is set; give one of: limits, max_waiting, rate"),
    (lambda app: app.queues.set("bulk", max_waiting=-1), "max_waiting is -1; use 0 or more"),
    (lambda app: app.queues.close("bulk", reason=""), "reason is empty"),
    (lambda app: app.queues.drain("bulk", reason="x", by="stop"), "use pause or close"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("change", "words"), BAD_SETS, ids=[words for _, words in BAD_SETS])
def test_a_change_that_means_nothing_is_refused(
    app: Fairlane, change: Callable[[Fairlane], object], words: str
) -> None:
    """With the words of what is wrong, and nothing is changed."""
    before = app.tenants.get("acme"), app.queues.get("bulk")
    with pytest.raises(ValueError, match=words):
        change(app)
    assert (app.tenants.get("acme"), app.queues.get("bulk")) == before


@pytest.mark.parametrize("name", ["a b", "", "*", "-x"])
def test_an_illegal_name_is_refused_before_the_store_is_asked(world: World, app: Fairlane, name: str) -> None:
    """S3; the rules of undeclared tenants are a file's to declare."""
    for look in (app.tenants.get, app.queues.get):
        with pytest.raises(InvalidJob, match="not a legal name"):
            look(name)
    assert world.asked == []


def test_a_queue_can_be_set_and_its_rate_taken_away(app: Fairlane) -> None:
    """None takes away, what is not given stays."""
    bulk = app.queues.set("bulk", limits=Limits(running=7), rate=None)
    assert (bulk.limits, bulk.rate, bulk.max_waiting) == (Limits(running=7), None, 50)
    bulk = app.queues.set("bulk", max_waiting=None, note="open the doors")
    assert (bulk.limits, bulk.max_waiting) == (Limits(running=7), None)
    assert bulk.override is not None
    assert bulk.override.values == {"limits": Limits(running=7), "rate": None, "max_waiting": None}
    assert app.queues.reset("bulk").max_waiting == 50


def test_declaring_a_tenant_keeps_the_limits_of_the_file(app: Fairlane) -> None:
    """A sign-up gives weight and labels; the tenant's limits are set elsewhere."""
    acme = app.tenants.declare("acme", weight=3, labels={"plan": "small"})
    assert (acme.weight, acme.labels, acme.limits["bulk"].running) == (3, {"plan": "small"}, 8)
    assert app.tenants.declare("new").declared == {"weight": 1.0, "labels": {}, "limits": {}}


# ── hold ─────────────────────────────────────────────────────────────────────


def test_a_pause_says_who_why_since_and_until(world: World, app: Fairlane) -> None:
    """And ends by resuming."""
    until = now(world) + timedelta(hours=1)
    app.tenants.pause("acme", reason="they asked", until=until, who="ops")
    app.queues.pause("bulk", reason="migration")
    assert app.tenants.get("acme").paused == Held("ops", "they asked", now(world), until)
    me = f"{getpass.getuser()}@{host()}"
    assert app.queues.get("bulk").paused == Held(me, "migration", now(world), None)
    app.tenants.resume("acme")
    app.queues.resume("bulk")
    assert (app.tenants.get("acme").paused, app.queues.get("bulk").paused) == (None, None)


def test_what_is_closed_takes_no_jobs_until_it_is_reopened(app: Fairlane) -> None:
    """Tenants and queues alike."""
    app.tenants.close("acme", reason="they left")
    with pytest.raises(Closed, match="tenant acme is closed for new jobs: they left"):
        enqueue(app)
    enqueue(app, "other")
    app.queues.close("bulk", reason="moving")
    with pytest.raises(Closed, match="queue bulk is closed"):
        enqueue(app, "other")
    assert app.queues.get("bulk").closed is not None
    assert app.tenants.get("acme").closed is not None
    app.tenants.reopen("acme")
    app.queues.reopen("bulk")
    enqueue(app)


def test_the_task_whose_handler_acts_is_named(world: World, app: Fairlane) -> None:
    """A handler that pauses a tenant inside `as_system` is recorded as a task, not as a person."""
    job = app.enqueue_by_name("note", {"text": "x"}, tenant="acme")
    context = Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    with handling(context), app.as_system(reason="their API answers 429"):
        app.tenants.pause("acme", reason="too fast")
    paused = app.tenants.get("acme").paused
    assert paused is not None
    assert paused.who == "task note"


def test_a_process_without_a_user_is_unknown(app: Fairlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container under a bare number."""

    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("fairlane.app.acting.getuser", nobody)
    app.tenants.pause("acme", reason="x")
    paused = app.tenants.get("acme").paused
    assert paused is not None
    assert paused.who == f"unknown@{host()}"


# ── drain ────────────────────────────────────────────────────────────────────


async def test_draining_pauses_and_waits_until_nothing_runs(world: World, app: Fairlane) -> None:
    """What waits stays, what runs ends."""
    for _ in range(2):
        await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme")
    claim = await world.claim("bulk")
    clock = world.drive(app)

    async def finish() -> None:
        await world.settle(claim, Succeeded())

    clock.meanwhile = [nothing, nothing, finish]
    assert await app.queues.adrain("bulk", reason="deploy")
    assert len(clock.waits) == 3
    bulk = await app.queues.aget("bulk")
    assert bulk.paused is not None
    assert (bulk.counts[State.READY], bulk.counts[State.RUNNING]) == (1, 0)


async def test_draining_gives_up_after_its_time_and_the_pause_stays(world: World, app: Fairlane) -> None:
    """The caller decides what then."""
    await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme")
    await world.claim("bulk")
    clock = world.drive(app)
    clock.meanwhile = [*[nothing] * 9, too_long]
    assert not await app.queues.adrain("bulk", reason="deploy", timeout=1.1)
    assert sum(clock.waits) == 1.1 * SECOND
    assert (await app.queues.aget("bulk")).paused is not None
    assert await app.queues.adrain("mail", reason="deploy", timeout=0)


async def test_draining_by_closing_waits_until_nothing_is_left(world: World, app: Fairlane) -> None:
    """What is due is worked off; what is delayed for later does not count."""
    await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme")
    await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme", delay=3600)
    clock = world.drive(app)

    async def work() -> None:
        await world.succeed(queue="bulk")

    clock.meanwhile = [nothing, work]
    assert await app.queues.adrain("bulk", reason="moving", by="close")
    assert len(clock.waits) == 2
    bulk = await app.queues.aget("bulk")
    assert bulk.closed is not None
    assert bulk.paused is None
    assert bulk.counts[State.DELAYED] == 1


async def nothing() -> None:
    """Let time pass."""


async def too_long() -> None:
    """End a wait that should have ended long ago."""
    pytest.fail("it waits for ever")


# ── purge and forget ─────────────────────────────────────────────────────────


def test_purging_cancels_all_that_waits_of_one_tenant(app: Fairlane) -> None:
    """In one queue or in all, and of nobody else."""
    for tenant in ("acme", "other"):
        for queue in ("bulk", "mail"):
            enqueue(app, tenant, queue=queue)
    assert app.tenants.purge("acme", queue="mail", reason="wrong list") == 1
    assert app.tenants.get("acme").counts["bulk"][State.READY] == 1
    assert app.tenants.purge("acme", reason="all") == 1
    assert app.tenants.purge("acme", reason="all") == 0
    assert app.jobs.count(tenant="other")[State.READY] == 2
    assert app.jobs.count(tenant="acme")[State.CANCELLED] == 2


def test_purge_and_forget_go_on_until_all_is_done(app: Fairlane) -> None:
    """One pass takes a thousand at the most."""
    declared = app.client.registry.find("note")
    assert declared is not None
    task = Task[..., None](declared, app).using(tenant="acme", queue="mail")
    for _ in range(2):
        app.enqueue_many([task.bind(number) for number in range(1000)])
    enqueue(app)
    assert app.tenants.purge("acme", reason="all") == 2001
    assert app.tenants.forget("acme", reason="they asked") == 2001


def test_forgetting_removes_the_schedules_of_the_tenant_first(world: World, app: Fairlane) -> None:
    """Else they would make more jobs; those of others, and those for many, stay."""
    many = schedule("many", declared=spec("many", for_tenants={}))
    made = [schedule("own"), schedule("other", tenant="globex"), many]
    request = SchedulesWriteRequest(scope=Scope.all(), changes=tuple(map(put, made)))
    schedules = world.oracle.schedules
    assert all(asyncio.run(schedules.write(request)).is_made)
    assert app.tenants.forget("acme", reason="they asked") == 0
    left = asyncio.run(schedules.list(SchedulesListRequest(scope=Scope.all())))
    assert [row.record.name for row in left.rows] == ["many", "other"]


def test_forgetting_tells_of_what_still_runs(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked to stop, and erased by a later call."""
    enqueue(app)
    enqueue(app)
    claim = asyncio.run(world.claim("bulk"))
    with caplog.at_level(logging.WARNING, "fairlane"):
        assert app.tenants.forget("acme", reason="they asked") == 1
    assert "tenant acme: 1 running job(s) are not erased yet" in caplog.text
    asyncio.run(world.settle(claim, Succeeded()))
    caplog.clear()
    assert app.tenants.forget("acme", reason="they asked") == 1
    assert caplog.text == ""


# ── scope (S9) ───────────────────────────────────────────────────────────────

TENANT_CALLS: list[Callable[[Fairlane], object]] = [
    lambda app: app.tenants.get("other"),
    lambda app: app.tenants.declare("other"),
    lambda app: app.tenants.set("other", weight=2),
    lambda app: app.tenants.reset("other"),
    lambda app: app.tenants.pause("other", reason="x"),
    lambda app: app.tenants.resume("other"),
    lambda app: app.tenants.close("other", reason="x"),
    lambda app: app.tenants.reopen("other"),
    lambda app: app.tenants.purge("other", reason="x"),
    lambda app: app.tenants.forget("other", reason="x"),
    lambda app: app.queues.get("bulk"),
    lambda app: app.queues.list(),
    lambda app: app.queues.set("bulk", max_waiting=1),
    lambda app: app.queues.reset("bulk"),
    lambda app: app.queues.pause("bulk", reason="x"),
    lambda app: app.queues.resume("bulk"),
    lambda app: app.queues.close("bulk", reason="x"),
    lambda app: app.queues.reopen("bulk"),
    lambda app: app.queues.drain("bulk", reason="x"),
    lambda app: app.enqueue_by_name("note", {"text": "x"}, tenant="other"),
    lambda app: app.enqueue_by_name("only-published", {}, tenant="other"),
]


@pytest.mark.parametrize("number", range(len(TENANT_CALLS)))
def test_from_inside_a_tenant_nothing_else_can_be_named(world: World, app: Fairlane, number: int) -> None:
    """Neither another tenant nor a queue, and the store is not even asked."""
    with app.tenant("acme"), pytest.raises(TenantMismatch):
        TENANT_CALLS[number](app)
    assert world.asked == []


def test_from_inside_a_tenant_its_own_is_there_and_no_other_is_listed(app: Fairlane) -> None:
    """It sees its counts, its limits and itself."""
    enqueue(app)
    enqueue(app, "other")
    with app.tenant("acme"):
        assert app.tenants.get("acme").limits["bulk"].running == 8
        assert [tenant.name for tenant in app.tenants.list()] == ["acme"]
        assert app.tenants.purge("acme", reason="x") == 1
        assert app.tenants.forget("acme", reason="x") == 1
    assert app.tenants.get("other").counts["bulk"][State.READY] == 1


POLICY_CALLS: dict[str, Callable[[Fairlane], object]] = {
    "declare": lambda app: app.tenants.declare("acme", weight=9),
    "set": lambda app: app.tenants.set("acme", weight=9),
    "set limits": lambda app: app.tenants.set("acme", queue="bulk", limits=Limits()),
    "reset": lambda app: app.tenants.reset("acme"),
    "reset one queue": lambda app: app.tenants.reset("acme", queue="bulk"),
    "pause": lambda app: app.tenants.pause("acme", reason="x"),
    "resume": lambda app: app.tenants.resume("acme"),
    "close": lambda app: app.tenants.close("acme", reason="x"),
    "reopen": lambda app: app.tenants.reopen("acme"),
}
"""What changes the policy of a tenant: weights, limits, rates, pauses, closes."""


@pytest.mark.parametrize("call", POLICY_CALLS.values(), ids=POLICY_CALLS)
@pytest.mark.parametrize("place", ["handler", "block"])
def test_from_inside_a_tenant_its_own_policy_cannot_be_changed(
    world: World, app: Fairlane, call: Callable[[Fairlane], object], place: str
) -> None:
    """S9, S54: it is an operator's matter. The error says what to do, and the store is not even asked."""
    job = app.enqueue_by_name("note", {"text": "x"}, tenant="acme")
    context = Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    world.asked.clear()
    inside = handling(context) if place == "handler" else app.tenant("acme")
    words = r"policy of tenant acme is for operators .* acts for tenant acme; .* system=True.*as_system"
    with inside, pytest.raises(InsideTenant, match=words):
        call(app)
    assert world.asked == []


@pytest.mark.parametrize("call", POLICY_CALLS.values(), ids=POLICY_CALLS)
@pytest.mark.parametrize("how", ["system task", "as_system"])
def test_a_system_task_and_a_handler_that_says_why_may_change_policies(
    app: Fairlane, call: Callable[[Fairlane], object], how: str
) -> None:
    """S8, S9: they act for any tenant."""
    tenant = "system" if how == "system task" else "acme"
    job = app.enqueue_by_name("note", {"text": "x"}, tenant=tenant)
    context = Context(tenant=tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    if how == "system task":
        with handling(context, is_system=True):
            call(app)
    else:
        with handling(context), app.as_system(reason="a sale"):
            call(app)


def test_a_queue_inside_a_tenant_is_called_what_it_is(app: Fairlane) -> None:
    """S9: it is no tenant, and belongs to all of them."""
    with app.tenant("acme"):
        for call in (app.queues.get, app.queues.resume):
            with pytest.raises(
                InsideTenant, match=r"^queue bulk belongs to all tenants, and this code acts for"
            ):
                call("bulk")
        with pytest.raises(InsideTenant, match=r"^queues belong to all tenants, and"):
            app.queues.list()
        with pytest.raises(TenantMismatch, match=r"^tenant other was named inside tenant acme; .*as_system"):
            app.tenants.get("other")


def test_a_name_that_is_not_legal_is_told_without_a_word_of_enqueues(app: Fairlane) -> None:
    """Nothing was enqueued; the error explains `*` only to callers who ask for it."""
    with pytest.raises(InvalidJob, match=r"^queue 'Bulk' is not a legal name; use 1 to 63 of"):
        app.queues.get("Bulk")
    with pytest.raises(InvalidJob, match=r"^tenant 'a b' is not a legal name; use 1 to 128"):
        app.tenants.get("a b")
    words = r"^tenant '\*' is not a legal name; it stands for all undeclared tenants"
    with pytest.raises(InvalidJob, match=words):
        app.tenants.get("*")


def test_a_system_task_may_name_anybody(app: Fairlane) -> None:
    """S8."""
    job = app.enqueue_by_name("note", {"text": "x"}, tenant="system")
    context = Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())
    with handling(context, is_system=True):
        assert app.tenants.get("acme").weight == 2
        assert app.queues.get("bulk").max_waiting == 50


# ── twins ────────────────────────────────────────────────────────────────────


async def test_every_method_has_a_twin_that_does_the_same(app: Fairlane) -> None:
    """With an `a` in front, the same parameters and the same words."""
    for space in (app.tenants, app.queues, app.jobs, app.tasks, app.gates, app.workers):
        names = [name for name in dir(type(space)) if not name.startswith("_")]
        plain = [name for name in names if f"a{name}" in names]
        assert sorted([*plain, *(f"a{name}" for name in plain)]) == sorted(set(names) - {"kind"})
        for name in set(plain) - {"each"}:  # whose twin is an iterator of the other kind
            one, twin = getattr(type(space), name), getattr(type(space), f"a{name}")
            assert one.__annotations__ == twin.__annotations__, name


async def test_async_callers_use_their_own_loop(app: Fairlane) -> None:
    """No thread is started for them."""
    await app.tenants.apause("acme", reason="x", who="ops")
    await app.tenants.aresume("acme")
    await app.tenants.adeclare("new", weight=4)
    await app.queues.aset("bulk", max_waiting=3)
    assert (await app.queues.areset("bulk")).max_waiting == 50
    assert [tenant.name for tenant in await app.tenants.alist()] == ["acme", "new"]
    assert await app.tenants.apurge("acme", reason="x") == 0
    assert not app.client.portal.is_open
