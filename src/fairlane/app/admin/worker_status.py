"""What a worker says about itself when it is asked (S70). Asks nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

QuestionKind: TypeAlias = Literal["status", "dump", "memory", "pause", "resume", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus:
    """What a slot does: the attempt whose handler runs there, and for how many seconds.

    `runs_in` is `loop`, `thread` or `process`. `stopping` says why the handler was asked to stop.
    """

    lane: str
    tenant: str
    queue: str
    task: str
    job: str
    attempt: int
    seconds: float
    runs_in: str
    stopping: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """A lane now: jobs that run, jobs claimed that wait for a slot, ended ones that are not settled yet."""

    name: str
    slots: int
    running: int
    waiting: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A worker at the moment it was asked.

    `loop_lag` is how many seconds its event loop took to turn; None if it did not turn within a second: a
    handler blocks it. `abandoned` counts handlers that ignored their timeout and still run. `memory` is the
    resident memory of the process in bytes, None where that is not known. `cpu` is how many processors were
    busy with it on average since it was asked before, or since its start; None from older workers. Neither
    counts child processes.
    """

    id: str
    state: str
    slots: Sequence[SlotStatus]
    lanes: Sequence[LaneStatus]
    abandoned: int
    loop_lag: float | None
    memory: int | None
    settled: int
    failed: int
    cpu: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """A worker's answer to a question: its status, and the text of a dump."""

    status: WorkerStatus
    text: str = ""
    error: str | None = None
