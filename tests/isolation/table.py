"""What each public callable does when a handler of tenant acme calls it: one line a call.

A new public callable stands in `CALLS`, or in `UNTOUCHED` with its reason, or the walk fails and names it. A
line of a plain method counts for its async twin as well, and both are called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from typing import Any, Final, NamedTuple, TypeAlias

import fairlane
from fairlane import Limits, Outbox, Relay
from fairlane.testing import Trial, dedicate
from fairlane.worker.worker import WorkerRuntime
from tests.isolation.world import Scene

Given: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

REFUSED: Final = "refused"
"""It raises a `Refused`, such as `TenantMismatch` or `InsideTenant`."""

NOT_FOUND: Final = "not found"
"""It raises `JobNotFound`, as for an id that was never used."""

LONG_AGO: Final = datetime(2026, 1, 1, tzinfo=UTC)

OWN: Final = "own"
"""It answers, and nothing of another tenant is in its answer."""


def given(*args: Any, **named: Any) -> Given:
    """Hold the arguments of a call."""
    return args, named


class Line(NamedTuple):
    """One call: of what, how it must end, and with which arguments, on which object if not the usual one."""

    name: str
    ends: str
    arguments: Callable[[Scene], Given] = lambda _: given()
    on: Callable[[Scene], Any] | None = None


def theirs(scene: Scene) -> Given:
    """Name a job of the other tenant."""
    return given(scene.theirs.id)


def mine(scene: Scene) -> Given:
    """Name a job of the own tenant."""
    return given(scene.mine.id)


def globex(_: Scene) -> Given:
    """Name the other tenant."""
    return given("globex")


def globex_why(_: Scene) -> Given:
    """Name the other tenant, and give a reason."""
    return given("globex", reason="x")


def acme_why(_: Scene) -> Given:
    """Name the own tenant, and give a reason."""
    return given("acme", reason="x")


def acme(_: Scene) -> Given:
    """Name the own tenant."""
    return given("acme")


def kept(_: Scene) -> Given:
    """Name a queue."""
    return given("kept")


def kept_why(_: Scene) -> Given:
    """Name a queue, and give a reason."""
    return given("kept", reason="x")


def note(_: Scene) -> Given:
    """Name a task."""
    return given("note")


def note_why(_: Scene) -> Given:
    """Name a task, and give a reason."""
    return given("note", reason="x")


def their_letter(scene: Scene) -> Given:
    """Name a dead letter of the other tenant."""
    return given(scene.their_dead.id)


def in_globex(_: Scene) -> Given:
    """Filter by the other tenant."""
    return given(tenant="globex")


ON: Final[dict[str, Callable[[Scene], Any]]] = {
    "Audit": lambda scene: scene.app.audit,
    "DeadLetters": lambda scene: scene.app.dead,
    "ReportedDuties": lambda scene: scene.app.duties,
    "Schedules": lambda scene: scene.app.schedules,
    "History": lambda scene: scene.app.history,
    "Events": lambda scene: scene.app.events,
    "Fairlane": lambda scene: scene.app,
    "Gates": lambda scene: scene.app.gates,
    "Breakers": lambda scene: scene.app.breakers,
    "Budgets": lambda scene: scene.app.budgets,
    "Job": lambda scene: scene.theirs,
    "Jobs": lambda scene: scene.app.jobs,
    "Outbox": lambda scene: Outbox(scene.app),
    "PublishedTasks": lambda scene: scene.app.tasks,
    "Queues": lambda scene: scene.app.queues,
    "Relay": lambda scene: Relay(scene.app, scene.outbox),
    "RelaySession": lambda scene: scene.session(),
    "Task": lambda scene: scene.note.using(tenant="globex"),
    "Tenants": lambda scene: scene.app.tenants,
    "Trial": lambda scene: Trial(scene.app, scene.url),
    "WorkerRuntime": lambda scene: WorkerRuntime(scene.app, lanes=[scene.lane], burst=True),
    "Sessions": lambda scene: scene.app.sessions,
    "Tokens": lambda scene: scene.app.tokens,
    "Users": lambda scene: scene.app.users,
    "Workers": lambda scene: scene.app.workers,
}
"""The object that the methods of a class are called on."""

DECIDING: Final = ("acknowledge", "resolve", "ignore", "discard", "reprocess", "delete")
"""What an operator does about a dead letter, or about all that match."""

ASKING: Final = ("status", "dump", "pause", "resume", "stop")
"""What an operator asks a worker."""

CALLS: Final = (
    # ── enqueue ──
    Line("Fairlane.enqueue_by_name", REFUSED, lambda _: given("note", {"text": "x"}, tenant="globex")),
    Line("Fairlane.enqueue_by_name", OWN, lambda _: given("note", {"text": "x"}, tenant="acme")),
    Line("Fairlane.enqueue_by_name", REFUSED, lambda _: given("sweep", {}, tenant="system")),
    Line(
        "Fairlane.enqueue_many", REFUSED, lambda scene: given([scene.note.using(tenant="globex").bind("x")])
    ),
    Line("Fairlane.enqueue_many", OWN, lambda scene: given([scene.note.bind("x")])),
    Line("Fairlane.tenant", REFUSED, globex),
    Line("Fairlane.tenant", REFUSED, lambda _: given("system")),
    Line("Fairlane.tenant", OWN, acme),
    Line("Task.enqueue", REFUSED, lambda _: given("x")),
    Line("Task.enqueue", OWN, lambda _: given("x"), on=lambda scene: scene.note),
    Line("Task.enqueue", REFUSED, on=lambda scene: scene.sweep),
    Line(
        "Outbox.add", REFUSED, lambda scene: given(scene.execute, scene.note.using(tenant="globex").bind("x"))
    ),
    Line("Outbox.add", OWN, lambda scene: given(scene.execute, scene.note.bind("x"))),
    Line("Outbox.add_many", REFUSED, lambda scene: given(scene.execute, [scene.sweep.bind()])),
    Line("Outbox.statements", REFUSED, lambda scene: given([scene.note.using(tenant="globex").bind("x")])),
    # ── jobs ──
    Line("Job.cancel", NOT_FOUND),
    Line("Job.refresh", NOT_FOUND),
    Line("Job.result", NOT_FOUND),
    Line("Jobs.again", NOT_FOUND, theirs),
    Line("Jobs.condemn", OWN, lambda scene: given(scene.theirs.id, reason="x")),
    Line("Jobs.edit", NOT_FOUND, lambda scene: given(scene.theirs.id, priority=1)),
    Line("Jobs.fail", NOT_FOUND, lambda scene: given(scene.theirs.id, retry=True, reason="x")),
    Line("Jobs.fail", NOT_FOUND, lambda scene: given(scene.theirs.id, retry=False, reason="x")),
    Line("Jobs.take_back", NOT_FOUND, lambda scene: given(scene.theirs.id, reason="x")),
    Line("Jobs.cancel", OWN, lambda scene: given(scene.theirs.id, scene.their_parent.id, descendants=True)),
    Line("Jobs.count", OWN),
    Line("Jobs.count", REFUSED, lambda _: given(tenant="globex")),
    Line("Jobs.count", OWN, lambda scene: given(parent=scene.their_parent.id)),
    Line("Jobs.each", OWN),
    Line("Jobs.each", REFUSED, lambda _: given(tenant="globex")),
    Line("Jobs.explain", NOT_FOUND, theirs),
    Line("Jobs.explain", OWN, mine),
    Line("Jobs.failures", OWN, lambda _: given(since=timedelta(hours=1))),
    Line("Jobs.failures", REFUSED, lambda _: given(since=timedelta(hours=1), tenant="globex")),
    Line("Jobs.stuck", OWN, lambda _: given(0)),
    Line("Jobs.stuck", REFUSED, lambda _: given(0, tenant="globex")),
    Line("Jobs.find", OWN),
    Line("Jobs.find", OWN, lambda scene: given(parent=scene.their_parent.id)),
    Line("Jobs.find", OWN, lambda scene: given(correlation_id="globex-order")),
    Line("Jobs.find", REFUSED, lambda _: given(tenant="globex")),
    Line("Jobs.find", OWN, lambda _: given("task:note or state:ready")),
    Line("Jobs.find", REFUSED, lambda _: given("tenant:globex")),
    Line("Jobs.trace", NOT_FOUND, theirs),
    Line("Jobs.trace", OWN, mine),
    Line("Jobs.get", NOT_FOUND, theirs),
    Line("Jobs.get", OWN, mine),
    Line("Jobs.peek", OWN, kept),
    Line("Jobs.peek", REFUSED, lambda _: given("kept", tenant="globex")),
    Line("Jobs.run_now", OWN, lambda scene: given(scene.their_delayed.id)),
    *(
        Line(f"Jobs.{verb}", REFUSED, lambda _: given("tenant:globex", dry_run=True))
        for verb in ("cancel_all", "run_now_all")
    ),
    *(Line(f"Jobs.{verb}", OWN, lambda _: given("task:none")) for verb in ("cancel_all", "run_now_all")),
    Line("Jobs.condemn_all", REFUSED, lambda _: given("tenant:globex", reason="x", dry_run=True)),
    Line("Jobs.condemn_all", OWN, lambda _: given("task:none", reason="x")),
    # ── dead letters ──
    Line("DeadLetters.get", NOT_FOUND, their_letter),
    Line("DeadLetters.get", OWN, lambda scene: given(scene.my_dead.id)),
    *(Line(f"DeadLetters.{verb}", OWN) for verb in ("find", "each", "count", "groups", "statistics")),
    *(Line(f"DeadLetters.{verb}", REFUSED, in_globex) for verb in ("find", "each", "count")),
    *(Line(f"DeadLetters.{verb}", REFUSED, in_globex) for verb in ("groups", "statistics")),
    Line("DeadLetters.find", OWN, lambda scene: given(fingerprint=scene.their_dead.fingerprint)),
    Line("DeadLetters.export", OWN, lambda _: given(StringIO())),
    Line("DeadLetters.export", REFUSED, lambda _: given(StringIO(), tenant="globex")),
    *(Line(f"DeadLetters.{verb}", NOT_FOUND, their_letter) for verb in DECIDING),
    Line("DeadLetters.note", NOT_FOUND, lambda scene: given(scene.their_dead.id, "x")),
    *(Line(f"DeadLetters.{verb}_all", REFUSED, in_globex) for verb in DECIDING),
    *(Line(f"DeadLetters.{verb}_all", OWN, lambda _: given(limit=1)) for verb in DECIDING),
    Line("DeadLetters.purge", REFUSED, lambda _: given(older_than=timedelta(0), tenant="globex")),
    Line("DeadLetters.purge", OWN, lambda _: given(older_than=timedelta(days=1))),
    # ── journals ──
    Line("Audit.find", OWN),
    Line("Audit.find", REFUSED, in_globex),
    Line("Audit.get", NOT_FOUND, lambda _: given(1)),
    Line("Audit.verify", REFUSED),
    Line("Audit.export", OWN, lambda _: given(StringIO())),
    Line("Audit.export", REFUSED, lambda _: given(StringIO(), tenant="globex")),
    Line("Events.find", OWN),
    *(Line(f"Events.{verb}", REFUSED, in_globex) for verb in ("find", "each", "tail")),
    Line("Events.each", OWN),
    # ── tenants ──
    Line("Tenants.get", REFUSED, globex),
    Line("Tenants.get", OWN, acme),
    Line("Tenants.list", OWN),
    Line("Tenants.shares", REFUSED),
    Line("Tenants.share", REFUSED, globex),
    Line("Tenants.share", REFUSED, acme),
    *(
        Line(f"Tenants.{verb}", REFUSED, who)
        for verb in ("declare", "resume", "reopen")
        for who in (globex, acme)
    ),
    *(
        Line(f"Tenants.{verb}", REFUSED, who)
        for verb in ("pause", "close", "drain")
        for who in (globex_why, acme_why)
    ),
    Line("Tenants.set", REFUSED, lambda _: given("globex", weight=100)),
    Line("Tenants.set", REFUSED, lambda _: given("acme", weight=100)),
    Line("Tenants.set", REFUSED, lambda _: given("acme", queue="kept", limits=Limits())),
    Line("Tenants.reset", REFUSED, globex),
    Line("Tenants.reset", REFUSED, acme),
    Line("Tenants.purge", REFUSED, globex_why),
    Line("Tenants.forget", REFUSED, globex_why),
    # ── queues ──
    *(Line(f"Queues.{verb}", REFUSED, kept) for verb in ("get", "reopen", "reset", "resume")),
    *(Line(f"Queues.{verb}", REFUSED, kept_why) for verb in ("pause", "close", "drain")),
    Line("Queues.list", REFUSED),
    Line("Queues.set", REFUSED, lambda _: given("kept", max_waiting=1_000)),
    Line("Queues.rates", REFUSED, kept),
    Line("Queues.remove", REFUSED, lambda _: given("kept", note="x")),
    Line("Queues.stats", REFUSED),
    Line("Queues.stats", REFUSED, kept),
    # ── tasks, gates and workers ──
    *(Line(f"PublishedTasks.{verb}", REFUSED, note) for verb in ("get", "reopen", "reset", "resume")),
    *(Line(f"PublishedTasks.{verb}", REFUSED, note_why) for verb in ("pause", "close", "drain")),
    Line("PublishedTasks.counts", REFUSED),
    Line("PublishedTasks.list", REFUSED),
    Line("PublishedTasks.retries", REFUSED, lambda _: given(since=timedelta(hours=1))),
    Line("PublishedTasks.versions", REFUSED, note),
    Line(
        "PublishedTasks.enqueue", REFUSED, lambda _: given("note", {"text": "x"}, tenant="globex", note="x")
    ),
    Line("PublishedTasks.set", REFUSED, lambda _: given("note", rate=None)),
    Line("Breakers.get", REFUSED, lambda _: given("mails")),
    Line("Breakers.list", REFUSED),
    Line("Breakers.open", REFUSED, lambda _: given("mails", reason="mine")),
    Line("Breakers.close", REFUSED, lambda _: given("mails", reason="mine")),
    Line("Breakers.reset", REFUSED, lambda _: given("mails")),
    Line("Budgets.get", REFUSED, lambda _: given("mails")),
    Line("Budgets.list", REFUSED),
    Line("Budgets.set", REFUSED, lambda _: given("mails", ceiling=1)),
    Line("Budgets.reset", REFUSED, lambda _: given("mails")),
    Line("Budgets.spend", REFUSED, lambda _: given("mails")),
    Line("Gates.get", REFUSED, lambda _: given("mails")),
    Line("Gates.list", REFUSED),
    Line("Gates.rates", REFUSED),
    Line("Gates.set", REFUSED, lambda _: given("mails", limit=1_000)),
    Line("Gates.reset", REFUSED, lambda _: given("mails")),
    *(Line(f"Schedules.{verb}", OWN) for verb in ("list", "failing")),
    *(Line(f"Schedules.{verb}", NOT_FOUND, lambda _: given("theirs")) for verb in ("get", "next", "history")),
    Line("Schedules.history", OWN, lambda _: given("mine")),
    Line("Schedules.preview", OWN, lambda _: given(every=60)),
    Line("Schedules.preview_edit", NOT_FOUND, lambda _: given("theirs", every=60)),
    Line("Schedules.add", REFUSED, lambda _: given("new", "note", every=60, tenant="globex")),
    Line("Schedules.edit", REFUSED, lambda _: given("mine", every=60)),
    Line("Schedules.pause", REFUSED, lambda _: given("mine", reason="x")),
    *(
        Line(f"Schedules.{verb}", REFUSED, lambda _: given("mine"))
        for verb in ("reset", "resume", "run", "remove")
    ),
    Line("Schedules.recompute", REFUSED),
    Line("Schedules.backfill", REFUSED, lambda _: given("mine", LONG_AGO, LONG_AGO)),
    Line("History.export", REFUSED, lambda _: given(StringIO())),
    Line("History.import_from", REFUSED, lambda _: given(BytesIO())),
    Line("ReportedDuties.leader", REFUSED),
    Line("ReportedDuties.list", REFUSED),
    Line("Workers.list", REFUSED),
    Line("Workers.get", REFUSED, lambda _: given("w")),
    *(Line(f"Workers.{verb}", REFUSED, lambda _: given("w")) for verb in ASKING),
    # ── access ──
    *(Line(f"{owner}.list", REFUSED) for owner in ("Users", "Tokens", "Sessions")),
    *(Line(f"Users.{verb}", REFUSED, lambda _: given("ann")) for verb in ("get", "set", "remove")),
    Line("Users.add", REFUSED, lambda _: given("bob", password="x" * 12, role="admin", tenant="acme")),
    Line("Tokens.create", REFUSED, lambda _: given("ci", role="viewer", tenant="acme")),
    *(Line(name, REFUSED, lambda _: given("0" * 20)) for name in ("Tokens.revoke", "Sessions.end")),
    # ── what serves all tenants ──
    Line("Relay.drain", REFUSED),
    Line("Relay.run", REFUSED, lambda _: given(threading.Event())),
    Line("Relay.start", REFUSED),
    Line("Relay.__enter__", REFUSED),
    Line("RelaySession.step", REFUSED),
    Line("WorkerRuntime.run", REFUSED),
    Line("Trial.__enter__", REFUSED),
    Line("Trial.__aenter__", REFUSED),
    Line("Trial.run", REFUSED),
    Line("Trial.jobs", OWN),
    Line("Trial.jobs", REFUSED, lambda _: given(tenant="globex")),
    Line("Trial.one", REFUSED, lambda _: given(tenant="globex")),
    Line("dedicate", REFUSED, lambda scene: given(scene.url), on=lambda _: dedicate),
    # ── last, as they take away what the others look at ──
    Line("Tenants.purge", OWN, acme_why),
    Line("Tenants.forget", OWN, acme_why),
)

UNTOUCHED: Final[dict[str, str]] = {
    "a value, or makes one": """
        Attempt AuditEntry AuditEntry.is_sealed AuditProblem AuditReport AuditReport.is_intact
        BulkResult BulkResult.is_complete DeadGroup DeadLetterView DeadLetterView.id DeadNote DeadStatistics
        DutyView EventView EventView.text ScheduleEdit SchedulePreview ScheduleView ScheduleView.is_active
        SlotView
        ExportResult ImportResult
        RefusedLetter RetryReport TaskRetries TaskRetries.success_rate
        Breaker BreakerView ForcedBreaker
        Backoff Backoff.delay Backoff.delays Backoff.exponential Backoff.gives_up
        Backoff.implied_attempts Backoff.micros Backoff.never Budget BudgetAccount BudgetView
        BudgetView.spent SpendView Call Counts Counts.__iter__ Counts.get
        Counts.is_complete Counts.is_finished Counts.items Counts.keys Counts.total
        Counts.unfinished Counts.values Counts.waiting FailureReport Gate GateView GateView.free Held Job
        Job.arguments Job.is_finished Job.logs Job.schedule Job.slot
        Lane Lane.headroom_slots Lane.shares Limits Overridden Page
        Page.__iter__ PassResult Trace Trace.__iter__ TracedJob Problem Problem.text Progress
        PublishedTask Queue QueueStats QueueView Rate Rate.next_allowed_from
        Rate.free_at Rate.interval Rate.rate_id Rate.allowed_starts Rate.start Share Share.min_parts Statement
        Task.bind Task.using TaskFailures Tenant Waiting Worker Worker.is_live WorkerLane LaneStatus
        NewToken QueueShare RateView Session SharedQueue SlotHolder SlotStatus TenantShare
        TenantShare.waiting TenantShares TaskVersion Token User WorkerStatus chunks
    """,
    "opens nothing before it is called": """
        Budgets Breakers BreakerBlock BreakerBlock.__aenter__ BreakerBlock.__aexit__ BreakerBlock.__enter__
        BreakerBlock.__exit__ Fairlane.breaker Audit DeadLetters ReportedDuties Events Schedules History
        Fairlane Fairlane.__aenter__ Fairlane.__enter__ Gates Jobs Outbox Outbox.ddl PublishedTasks
        Queues Relay Relay.session
        RelaySession RelaySession.__enter__ Sessions Task Tasks Tenants Tokens Trial Users WorkerRuntime
        Workers
    """,
    "says something of code, not of jobs": """
        EventData EventDecorator EventDecorator.__call__
        Fairlane.client Fairlane.include Fairlane.join Fairlane.on_event Fairlane.on_shutdown
        Fairlane.on_startup Fairlane.resource Fairlane.schedule Fairlane.settings
        Fairlane.task Fairlane.tenant_context
        Task.func Task.name Task.queue Task.upcast TaskDecorator TaskDecorator.__call__ Tasks.client
        Tasks.join Tasks.on_event Tasks.schedule Tasks.task fixture
    """,
    "ends what the caller began; the application of a worker cannot be closed under it": """
        Fairlane.__aexit__ Fairlane.__exit__ Fairlane.close Relay.__exit__ Relay.stop RelaySession.__exit__
        RelaySession.disconnect Trial.__aexit__ Trial.__exit__
    """,
    "the only widening, which says why and is logged": "Fairlane.as_system",
    "the handler's own attempt, tenant and job": """
        Context Context.cancelled Context.check Context.job Context.log Context.metadata Context.progress
        Context.resource Context.schedule Context.slot Context.spend Context.succeed_in
        current_job current_tenant
    """,
    "sets the current tenant, and no other, on a connection of the application's own": """
        register_django register_engine set_tenant
    """,
    "says who acts, and widens nothing": "Fairlane.acting_as",
    "looks at a job in hand": "assert_state",
    "says that a task is not called": "Task.__call__",
    "the clock of a test's store": "Trial.advance Trial.now",
    "facts of a worker in hand; it was run by somebody who might": """
        WorkerRuntime.failed WorkerRuntime.has_abandoned WorkerRuntime.has_lost_its_store
        WorkerRuntime.handed_back WorkerRuntime.is_ready WorkerRuntime.loop_blocked WorkerRuntime.running
        WorkerRuntime.settled WorkerRuntime.stop WorkerRuntime.stop_attempt WorkerRuntime.alive
        WorkerRuntime.drain WorkerRuntime.dump WorkerRuntime.memory_exceeded WorkerRuntime.pause
        WorkerRuntime.quarantine
        WorkerRuntime.replace WorkerRuntime.resume WorkerRuntime.serve WorkerRuntime.stop_now
        WorkerRuntime.leases_renewed WorkerRuntime.wants_replacement
    """,
}
"""Callables that reach no store, and why; those that do stand above."""


def classified() -> Iterator[str]:
    """Name every callable that a line or a reason was written for, some more than once."""
    yield from (line.name for line in CALLS)
    for names in UNTOUCHED.values():
        yield from names.split()


def target(line: Line, scene: Scene, *, twin: bool) -> Callable[..., Any]:
    """Return what a line calls: the method, or its async twin if it has one and that is asked for."""
    owner, _, verb = line.name.rpartition(".")
    if not owner:
        function: Callable[..., Any] = getattr(fairlane, verb) if line.on is None else line.on(scene)
        return function
    receiver = (line.on or ON[owner])(scene)
    if twin and hasattr(receiver, f"a{verb}"):
        verb = f"a{verb}"
    method: Callable[..., Any] = getattr(receiver, verb)
    return method
