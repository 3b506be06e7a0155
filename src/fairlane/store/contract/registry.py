"""Who is there: workers and what they can run, the lead lease, and wake-ups."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import DedupUntil
from fairlane.model.policy import DEFAULT_ATTEMPTS
from fairlane.store.contract.request import Request

LIVE_WITHIN: Final[Micros] = 15 * SECOND
"""A worker whose last heartbeat is older does not count as live."""

WorkerState: TypeAlias = Literal["starting", "idle", "busy", "paused", "draining"]


class TaskCard(msgspec.Struct, frozen=True, kw_only=True):
    """A task as workers publish it, so that others can enqueue by name and show its jobs.

    `schema` is a JSON Schema of the arguments. `priority` counts as stores do; a timeout of None is none.
    `sensitive` names fields that are redacted besides those that always are (S6). `module` is where the
    handler stands; empty if the worker does not say.
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


class LaneCard(msgspec.Struct, frozen=True):
    """A lane as its worker introduces it."""

    name: str
    slots: int
    queues: tuple[str, ...]


class WorkerCard(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it introduces itself. The id has host, pid, start and a random part (no two are equal).

    `headroom` is how many of its slots are kept (S48); a worker of a version that does not say keeps none.
    """

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    headroom: int = 0
    tasks: tuple[TaskCard, ...] = ()
    labels: tuple[str, ...] = ()
    lanes: tuple[LaneCard, ...] = ()


class RegisterRequest(Request, frozen=True, kw_only=True):
    """Introduce a worker; it counts as its first heartbeat."""

    card: WorkerCard
    renew_every: Micros


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    """Say that a worker lives, and what it has done."""

    worker: str
    state: WorkerState
    renew_every: Micros
    running: int = 0
    settled: int = 0
    failed: int = 0


class LeaveRequest(Request, frozen=True, kw_only=True):
    """Say that a worker stops in good order."""

    worker: str


class WorkersRequest(Request, frozen=True, kw_only=True):
    """Ask for workers whose last heartbeat is not older than this."""

    seen_within: Micros | None = None


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the registry knows it."""

    card: WorkerCard
    state: WorkerState
    started_at: Instant
    beat_at: Instant
    running: int = 0
    settled: int = 0
    failed: int = 0


class TasksRequest(Request, frozen=True, kw_only=True):
    """Ask for published tasks, by name or all; of each the version that speaks for it, or every version."""

    names: tuple[str, ...] = ()
    every_version: bool = False


class TaskView(msgspec.Struct, frozen=True):
    """A published task and when a live worker last said that it knows it."""

    card: TaskCard
    seen_at: Instant


class CleanRequest(Request, frozen=True, kw_only=True):
    """Forget workers not heard of for this long."""

    silent_for: Micros


class LeadRequest(Request, frozen=True, kw_only=True):
    """Ask for, or keep, the lead of some duties for a while."""

    name: str
    worker: str
    lease: Micros


class LeadReply(msgspec.Struct, frozen=True):
    """Who leads, and until when."""

    worker: str
    until: Instant


class Pulse(msgspec.Struct, frozen=True):
    """The heartbeats of all workers together, for the rule that reclaiming rests after an outage (S38).

    `beat_at` is the newest heartbeat; `resumed_at` is the newest that came after all workers had been silent
    for longer than its renew interval and two seconds, or that was the first ever.
    """

    now: Instant
    beat_at: Instant | None
    resumed_at: Instant | None


class WakeRequest(Request, frozen=True, kw_only=True):
    """Queues that may have something to claim, or workers that have something to hear."""

    queues: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()


class WaitRequest(Request, frozen=True, kw_only=True):
    """Wait for a hint about these queues or this worker, at most so long."""

    worker: str
    queues: tuple[str, ...]
    at_most: Micros


class Registry(Protocol):
    """Know the workers and the tasks, agree on a leader, pass hints. Nothing here decides a job's fate."""

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Hear how many calls at a time this loop makes at most, and whether it waits for hints besides.

        A store may need as many ways to its server; what does not fit waits its turn. Asks no server.
        """

    async def register(self, request: RegisterRequest) -> None:
        """Add a worker and publish its tasks; the same id again replaces what it said before."""

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """Note that a worker lives. False: it is not known here (any more) and must register again."""

    async def leave(self, request: LeaveRequest) -> None:
        """Take a worker off the list at once; leads it holds end. Its tasks stay published."""

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """List workers by id."""

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """List published tasks by name; an alias finds its task. Unknown names are left out.

        Of several versions the newest that a live worker knows speaks for the task, and `seen_at` is when any
        was last seen; if no worker lives, those seen within `LIVE_WITHIN` of the last count as live. With
        `every_version` each that was ever published is listed, by name and version, as it was last seen.
        """

    async def clean(self, request: CleanRequest) -> tuple[str, ...]:
        """Forget silent workers; name them. Their claims are reclaimed by their leases, not here."""

    async def lead(self, request: LeadRequest) -> LeadReply:
        """Give the lead to whoever asks first; keep it for whoever has it and asks again in time.

        Correctness never depends on it (S61).
        """

    async def pulse(self, request: Request) -> Pulse:
        """Say when workers were last heard of."""

    async def wake(self, request: WakeRequest) -> None:
        """Hint. It may be lost; polling is the truth."""

    async def wait(self, request: WaitRequest) -> bool:
        """Wait until a hint arrives (True) or the time is over (False). A hint that came just before counts.

        Not atomic, holds nothing, and may answer True for no reason.
        """
