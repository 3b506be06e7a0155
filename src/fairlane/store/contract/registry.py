"""The registry: workers and the tasks they can run, the leader, and wake-up hints."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from fairlane.model.duty_report import DutyReports
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import DedupUntil, OnStuck
from fairlane.model.policy.declared import DEFAULT_ATTEMPTS
from fairlane.store.contract.request import Request

LIVE_WITHIN: Final[Micros] = 15 * SECOND
"""A worker whose last heartbeat is older is not live."""

WorkerState: TypeAlias = Literal["starting", "idle", "busy", "paused", "draining"]


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A task as workers publish it, so that others can enqueue it by name and show its jobs.

    `schema` is a JSON Schema of the arguments. `priority` has the stores' direction. A timeout of None is no
    timeout. `sensitive` names fields to redact besides the built-in ones (S6). `module` is that of the
    handler; empty if unknown. `events` are the kinds of events that it subscribes to (S77).
    """

    name: str
    queue: str
    version: int = 1
    schema: bytes = b"{}"
    aliases: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    priority: int = 0
    timeout: Micros | None = None
    max_attempts: int = DEFAULT_ATTEMPTS
    dedup_until: DedupUntil = "settled"
    at_most_once: bool = False
    system: bool = False
    module: str = ""
    stuck_after: Micros | None = None
    on_stuck: OnStuck = "dead"
    events: tuple[str, ...] = ()


class LaneRecord(msgspec.Struct, frozen=True):
    """A lane of a worker."""

    name: str
    slots: int
    queues: tuple[str, ...]


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it registers. The id contains host, pid, start time and a random part, so it is unique.

    `headroom` is the number of reserved slots (S48); 0 for a worker of a version that does not report it.
    """

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    headroom: int = 0
    tasks: tuple[TaskRecord, ...] = ()
    labels: tuple[str, ...] = ()
    lanes: tuple[LaneRecord, ...] = ()


class RegisterRequest(Request, frozen=True, kw_only=True):
    """Register a worker; this is also its first heartbeat."""

    record: WorkerRecord
    renew_every: Micros


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    """Report that a worker is alive, what it has done, and what its process uses.

    `memory` is resident, in bytes; `cpu` is how many processors it kept busy since its last heartbeat. Both
    are None where the system does not say, and leave child processes out.
    """

    worker: str
    state: WorkerState
    renew_every: Micros
    running: int = 0
    settled: int = 0
    failed: int = 0
    memory: int | None = None
    cpu: float | None = None


class LeaveRequest(Request, frozen=True, kw_only=True):
    """Report that a worker stops in good order."""

    worker: str


class WorkersRequest(Request, frozen=True, kw_only=True):
    """Ask for workers whose last heartbeat is not older than `seen_within`."""

    seen_within: Micros | None = None


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A registered worker and its last heartbeat.

    `memory` and `cpu` are None until its first one, and of a worker of a version that does not report them.
    """

    record: WorkerRecord
    state: WorkerState
    started_at: Instant
    beat_at: Instant
    running: int = 0
    settled: int = 0
    failed: int = 0
    memory: int | None = None
    cpu: float | None = None


class TasksRequest(Request, frozen=True, kw_only=True):
    """Ask for published tasks, by name or all: the current version of each, or every version."""

    names: tuple[str, ...] = ()
    every_version: bool = False


class TaskView(msgspec.Struct, frozen=True):
    """A published task and when a worker last published it."""

    record: TaskRecord
    seen_at: Instant


class ForgetWorkersRequest(Request, frozen=True, kw_only=True):
    """Remove workers without a heartbeat for this long."""

    silent_for: Micros


class LeadRequest(Request, frozen=True, kw_only=True):
    """Ask for, or extend, the lead of some duties. `reports` says how these went, if the worker leads."""

    name: str
    worker: str
    lease: Micros
    reports: DutyReports | None = None


class LeadReply(msgspec.Struct, frozen=True):
    """The leader, and until when."""

    worker: str
    until: Instant


class DutiesRequest(Request, frozen=True, kw_only=True):
    """Ask who leads some duties, and how these went."""

    name: str


class DutiesReply(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads now, None if nobody does, and what the last leader has reported."""

    now: Instant = 0
    leader: LeadReply | None = None
    reports: DutyReports = DutyReports()


class StoreStatus(msgspec.Struct, frozen=True):
    """The store's now and the newest heartbeats of all workers: reclaiming pauses after an outage (S38).

    `beat_at` is the newest heartbeat. `resumed_at` is the newest that ended a silence of all workers longer
    than its renew interval and two seconds, or that was the first ever.
    """

    now: Instant
    beat_at: Instant | None
    resumed_at: Instant | None


class WakeRequest(Request, frozen=True, kw_only=True):
    """Wake workers: those that serve these queues, or these workers."""

    queues: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()


class WaitRequest(Request, frozen=True, kw_only=True):
    """Wait for a hint about these queues or this worker, for at most `at_most`."""

    worker: str
    queues: tuple[str, ...]
    at_most: Micros


class RegistryFacet(Protocol):
    """Register workers and tasks, elect a leader, pass hints. Nothing here decides what becomes of a job."""

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Prepare for this many concurrent calls of this event loop, and for waiting for hints.

        A store may need as many connections; further calls wait. Contacts no server.
        """

    async def register(self, request: RegisterRequest) -> None:
        """Add a worker and publish its tasks; a repeated id replaces its record."""

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """Record a heartbeat. False: the worker is unknown, or was removed, and must register again."""

    async def leave(self, request: LeaveRequest) -> None:
        """Remove a worker at once and end its leads. Its tasks stay published."""

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """Return the workers, by id."""

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """Return published tasks by name; an alias finds its task. Unknown names are left out.

        Of several versions the newest that a live worker knows is the current one, and `seen_at` is when any
        version was last seen. If no worker is live, those seen within `LIVE_WITHIN` of the last count as
        live. With `every_version`, each version ever published is returned as it was last seen.
        """

    async def clean(self, request: ForgetWorkersRequest) -> tuple[str, ...]:
        """Remove silent workers and return their ids. Their claims are reclaimed when the leases expire."""

    async def lead(self, request: LeadRequest) -> LeadReply:
        """Give the lead to the first worker that asks, or extend it for the leader. Return the leader.

        Correctness never depends on it (S61). Reports are stored in the same step, if the worker leads;
        without any, those of before stay.
        """

    async def duties(self, request: DutiesRequest) -> DutiesReply:
        """Return who leads some duties, and what was last reported of them (S104)."""

    async def status(self, request: Request) -> StoreStatus:
        """Return the store's now and when workers were last heard of."""

    async def wake(self, request: WakeRequest) -> None:
        """Send a hint. It may be lost: workers poll as well."""

    async def wait(self, request: WaitRequest) -> bool:
        """Wait until a hint arrives (True) or the time is over (False). A hint from just before counts.

        Not atomic, holds no resources, and may return True without a reason.
        """
