"""What type checkers must infer from right use. Read by mypy and pyright; the functions are never called."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

from fairlane import (
    Backoff,
    Call,
    CancelReply,
    Context,
    ErrorClass,
    EventData,
    Fairlane,
    Gate,
    Held,
    Job,
    Lane,
    Limits,
    Outbox,
    Overridden,
    Page,
    Progress,
    Queue,
    QueueView,
    Rate,
    Relay,
    SchedulePreview,
    ScheduleView,
    Share,
    SlotView,
    State,
    Task,
    Tasks,
    Tenant,
    Waiting,
    current_job,
    current_tenant,
)

app = Fairlane(
    "scheme://place",
    queues=[
        Queue("critical", timeout=60, retry=Backoff.delays(1, 2), limits=Limits(waiting=5, rate=Rate(9)))
    ],
    lanes=[Lane("main", 4, {"critical": Share(2.0), "default": 1})],
    gates=[Gate("screens", 3)],
    tenancy="required",
    fixed_queues=False,
    priority="lower_first",
    priority_default=5,
    payload={"check_types": False, "sensitive": "reject", "require": ["correlation_id"]},
)
tasks = Tasks(prefix="lib.", queue="bulk")


# ── handlers of every kind ───────────────────────────────────────────────────


@app.task
async def async_with_context(ctx: Context, to: str, pages: int = 1) -> str:
    """Async, with context, with a default."""
    ctx.progress(0.5, note=f"{to} {pages}")
    ctx.check()
    return ctx.tenant


@app.task
async def async_plain(to: str, *, copies: int = 1) -> int:
    """Async, without context, with a keyword-only parameter."""
    return len(to) * copies


@app.task
def plain_with_context(ctx: Context, rows: list[int]) -> dict[str, int]:
    """Plain, with context."""
    return {str(row): ctx.attempt for row in rows}


@app.task
def plain(day: datetime, amount: Decimal = Decimal(1)) -> Decimal:
    """Plain, without context."""
    return amount * day.year


@app.task
async def bare() -> None:
    """Async, without anything."""


@app.task
def only_context(ctx: Context) -> bool:
    """Plain, with nothing but the context."""
    return ctx.cancelled


@app.task
async def in_a_transaction(ctx: Context, connection: str) -> None:
    """With both words for a success in a transaction of its own."""
    ctx.succeed_in(connection, {"kept": 1})
    await ctx.asucceed_in(connection)


@app.task(
    queue="critical",
    name="mail.send",
    aliases=["send_mail"],
    version=2,
    priority=3,
    timeout=timedelta(minutes=2),
    soft_timeout=60,
    max_attempts=4,
    retry={ErrorClass.RATE_LIMITED: Backoff.exponential(60)},
    retry_delay=lambda error, failures: timedelta(hours=1) if isinstance(error, OSError) else 5 * failures,
    classify=lambda error: ErrorClass.TRANSIENT if isinstance(error, OSError) else None,
    gate=Gate("screens", 3),
    rate=Rate(50, "minute", burst=5),
    at_most_once=True,
    keep_result=False,
    on_shutdown="requeue",
    dedup_until="started",
    sensitive=["iban"],
)
async def optioned(ctx: Context, to: str, attach: bytes | None = None) -> UUID:
    """Async, with context and every option."""
    return ctx.job.id


@app.task(timeout=None)
def optioned_plain(x: int) -> float:
    """Plain, with an option."""
    return x / 2


@tasks.task
async def from_library(ctx: Context, x: int) -> bytes:
    """On Tasks, bare."""
    return bytes(x)


@tasks.task(system=True)
def from_library_plain(x: int, y: str = "") -> list[str]:
    """On Tasks, with options."""
    return [y] * x


@optioned.upcast(1)
def older(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take yesterday's arguments."""
    return {"to": arguments["recipient"]}


app.include(tasks)


# ── what comes out of them ───────────────────────────────────────────────────


def the_task_has_the_handlers_parameters_without_the_context() -> None:
    """A task is generic in them and in the result."""
    one: Task[[str], None] = app.task(takes_text)
    another: Task[[int], bytes] = from_library
    assert_type(one.name, str)
    assert_type(another.queue, str)
    assert_type(one.func, Callable[..., Any])


def takes_text(text: str) -> None:
    """Registered by a call instead of a decorator."""


def sync_enqueue() -> None:
    """`enqueue` gives a job of the handler's result."""
    assert_type(async_with_context.enqueue(to="a", pages=3), Job[str])
    assert_type(async_with_context.enqueue("a"), Job[str])
    assert_type(async_plain.enqueue("a", copies=2), Job[int])
    assert_type(plain_with_context.enqueue([1]), Job[dict[str, int]])
    assert_type(plain.enqueue(datetime.now(UTC)), Job[Decimal])
    assert_type(bare.enqueue(), Job[None])
    assert_type(only_context.enqueue(), Job[bool])
    assert_type(optioned.enqueue("a", attach=b""), Job[UUID])
    assert_type(optioned_plain.enqueue(1), Job[float])
    assert_type(from_library.enqueue(x=1), Job[bytes])
    assert_type(from_library_plain.enqueue(1, y="z"), Job[list[str]])


async def async_enqueue() -> None:
    """`aenqueue` gives the same, awaited."""
    assert_type(await async_with_context.aenqueue(to="a"), Job[str])
    assert_type(await async_plain.aenqueue("a"), Job[int])
    assert_type(await plain_with_context.aenqueue(rows=[]), Job[dict[str, int]])
    assert_type(await plain.aenqueue(day=datetime.now(UTC), amount=Decimal(2)), Job[Decimal])
    assert_type(await bare.aenqueue(), Job[None])
    assert_type(await optioned.aenqueue("a"), Job[UUID])
    assert_type(await from_library_plain.aenqueue(2), Job[list[str]])


def using_keeps_the_type(parent: Job[str]) -> None:
    """Options are checked, and the parameters stay those of the handler."""
    later = optioned.using(
        tenant="acme",
        queue="critical",
        priority=3,
        run_at=datetime.now(UTC),
        expires_in=timedelta(hours=1),
        idempotency_key="k",
        on_duplicate="replace_dead",
        dedup_key="d",
        correlation_id="c",
        created_by="ann",
        parent=parent,
        max_attempts=2,
        timeout=None,
        tags={"a", "b=c"},
        metadata={"plan": "pro", "seats": [1, 2], "nested": {"x": None}},
        connection=object(),
    )
    assert_type(later.enqueue("a", attach=None), Job[UUID])
    assert_type(later.using(delay=5, parent=parent.id).bind("a"), Call[UUID])


def binding_and_batches() -> None:
    """`bind` gives a call of the result; a batch takes calls of any."""
    assert_type(async_with_context.bind("a"), Call[str])
    assert_type(plain.bind(datetime.now(UTC)), Call[Decimal])
    assert_type(app.enqueue_many([bare.bind(), plain_with_context.bind([1])]), list[Job[Any]])
    assert_type(app.enqueue_many(async_plain.bind(to) for to in "ab"), list[Job[Any]])


async def async_batches() -> None:
    """The twin of a batch."""
    assert_type(await app.aenqueue_many([bare.bind()]), list[Job[Any]])
    assert_type(await app.aenqueue_many([bare.bind()], connection=object()), list[Job[Any]])


def an_outbox(db: sqlite3.Connection) -> None:
    """A DB-API connection fits as it is, to add and to relay."""
    outbox = Outbox(app, paramstyle="qmark")
    assert_type(outbox.add(db.execute, bare.bind()), UUID)
    assert_type(outbox.add_many(db.execute, [bare.bind()]), list[UUID])
    assert_type(outbox.statements([bare.bind()])[0].sql, str)
    with Relay(app, lambda: sqlite3.connect("shop.db"), poll=timedelta(seconds=1)) as relay:
        assert_type(relay.drain(), int)


def a_job(job: Job[str]) -> None:
    """A job's methods know its result."""
    assert_type(job.result(), str)
    assert_type(job.result(timeout=timedelta(seconds=5)), str)
    assert_type(job.refresh(), Job[str])
    assert_type(job.cancel("ordered twice"), CancelReply)
    assert_type(job.state, State)
    assert_type(job.arguments, Mapping[str, Any])
    assert_type(job.progress, Progress | None)
    assert_type(job.logs, Mapping[int, Sequence[str]])
    assert_type(bare.enqueue().result(5), None)
    assert_type(a_job_of_anything(job), object)


def a_job_of_anything(job: Job[object]) -> object:
    """A job is covariant in its result."""
    return job.result()


async def a_job_awaited(job: Job[str]) -> None:
    """The twins."""
    assert_type(await job.aresult(1.5), str)
    assert_type(await job.arefresh(), Job[str])
    assert_type(await job.acancel(), CancelReply)


def looking() -> None:
    """The namespace of jobs."""
    assert_type(app.jobs.get("0" * 26), Job[Any])
    page = app.jobs.find(tenant="acme", state={State.READY, State.DEAD}, limit=10)
    assert_type(page, Page[Job[Any]])
    assert_type(iter(page), Iterator[Job[Any]])
    assert_type(app.jobs.count()[State.READY], int)
    assert_type(app.jobs.explain(UUID(int=1)), Waiting)
    assert_type(app.jobs.cancel("a", reason="b", descendants=True)[UUID(int=1)], CancelReply)
    assert_type(app.jobs.run_now(UUID(int=1), "b"), int)


def steering() -> None:
    """The namespaces of tenants and queues."""
    tenant = app.tenants.set("acme", queue="bulk", weight=2, limits=Limits(running=4), note="a", until=UNTIL)
    assert_type(tenant, Tenant)
    assert_type(tenant.limits["bulk"], Limits)
    assert_type(tenant.counts["bulk"][State.READY], int)
    assert_type(tenant.paused, Held | None)
    assert_type(tenant.override, Overridden | None)
    assert_type(app.tenants.list(labels={"plan": "big"}), Page[Tenant])
    assert_type(app.tenants.declare("acme", weight=2.0, labels={"plan": "big"}), Tenant)
    assert_type(app.tenants.purge("acme", reason="gone"), int)
    assert_type(app.tenants.forget("acme", reason="gone", who="ops"), int)
    app.tenants.pause("acme", reason="calm", until=UNTIL, who="ops")
    queue = app.queues.set("bulk", rate=None, max_waiting=None)
    assert_type(queue, QueueView)
    assert_type(queue.rate, Rate | None)
    assert_type(app.queues.list()[0].closed, Held | None)
    assert_type(app.queues.drain("bulk", reason="deploy", by="close", timeout=timedelta(minutes=1)), bool)
    assert_type(app.enqueue_by_name("mail.send", {"to": "a"}, tenant="acme", delay=5), Job[Any])


async def steering_awaited() -> None:
    """The twins."""
    assert_type(await app.tenants.aget("acme"), Tenant)
    assert_type(await app.tenants.alist(), Page[Tenant])
    assert_type(await app.queues.areset("bulk"), QueueView)
    assert_type(await app.queues.adrain("bulk", reason="deploy"), bool)
    await app.queues.areopen("bulk", note="done")
    assert_type(await app.aenqueue_by_name("mail.send", {}, tenant="acme"), Job[Any])


UNTIL = datetime(2030, 1, 1, tzinfo=UTC)
by_path = Fairlane(config=Path("fairlane.toml"))
by_table = Fairlane(config={"worker": {"lease": 20}})


async def surroundings() -> AsyncIterator[str]:
    """Tenants and life cycle."""
    with app.tenant("acme"):
        assert_type(current_tenant(), str)
        assert_type(current_job(), Job[Any])
    with app as same:
        assert_type(same, Fairlane)
    async with app as same:
        assert_type(same, Fairlane)
    yield ""


def a_decorated_handler(wrap: Callable[[Callable[[Context, int], Awaitable[str]]], Any]) -> None:
    """A handler known only as a callable still gives up its context and keeps its result."""

    async def handler(ctx: Context, x: int) -> str:
        return str(x)

    known: Callable[[Context, int], Awaitable[str]] = handler
    assert_type(app.task(name="known")(known).enqueue(1), Job[str])


@app.on_event("dlq_alert", "job_stuck", queue="ops", max_attempts=3)
async def page(ctx: Context, event: EventData) -> None:
    """A subscriber may take the context first."""
    assert_type(event["tenant"], str | None)
    assert_type(event["body"], dict[str, Any])


@tasks.on_event("dead_letter")
def note(event: dict[str, Any]) -> int:
    """A plain one, with any dict."""
    return len(event)


@app.schedule("0 9 * * MON", timezone="Europe/Berlin", between=(time(9), "16:00"), catch_up=10)
@app.task(name="scheduled")
async def scheduled(ctx: Context, day: str) -> int:
    """A schedule leaves the task as it is."""
    assert_type(ctx.schedule, str | None)
    assert_type(ctx.slot, datetime | None)
    return len(day)


@tasks.schedule(every=timedelta(minutes=5), for_tenants={"plan": "pro"}, spread="10m")
@tasks.task
def everywhere() -> None:
    """Of a collection."""


def schedules_are_looked_at_and_changed() -> None:
    """Each verb returns what it says."""
    assert_type(scheduled.enqueue("x"), Job[int])
    assert_type(everywhere.enqueue(), Job[None])
    assert_type(app.schedules.list(active=True), Page[ScheduleView])
    assert_type(app.schedules.add("nightly", "scheduled", "@daily", arguments={"day": "x"}), ScheduleView)
    assert_type(app.schedules.edit("nightly", every=60, until=datetime.now(UTC)), ScheduleView)
    assert_type(app.schedules.run("nightly"), Job[Any] | None)
    assert_type(app.schedules.history("nightly"), Page[SlotView])
    assert_type(app.schedules.next("nightly"), Sequence[datetime])
    assert_type(app.schedules.preview(cron="@hourly"), SchedulePreview)


def a_subscriber_is_a_task_of_one_event(event: EventData, other: dict[str, Any]) -> None:
    """Which may be enqueued by hand, too."""
    assert_type(page, Task[[EventData], Any])
    assert_type(note.enqueue(other), Job[Any])
    assert_type(page.enqueue(event), Job[Any])
