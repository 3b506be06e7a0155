"""The settings of a worker: the table `[worker]` of fairlane.toml, in whole microseconds. Checks nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlane.model.instants import HOUR, SECOND, Micros
from fairlane.model.retry.decision import MAX_CRASHES

Sigint: TypeAlias = Literal["graceful", "immediate"]
UnknownTaskAction: TypeAlias = Literal["hand_back", "fail"]


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Lease and renewal, shutdown, and whether the worker takes part in the duties (S37, S61).

    After `max_jobs` jobs, or with more than `max_memory` bytes resident, a worker stops in good order, so
    that its supervisor replaces it. `processes` is how many share the slots of one `fairlane worker` (S47).
    With more than `max_abandoned` handlers that ignored their end, or when it is stalled for `stalled_after`
    (S31), it is replaced, too. `sigint` says what Ctrl-C does, `unknown_task` what becomes of a job whose
    task is not known here (S33).
    A job is dead after `max_crashes` crashes, if the last two were its own (S40). A worker has at most
    `children` child processes, None means as many as slots; the values after it say when one is replaced
    (S69).
    At `health_host` and `health_port`, if that is set, probes are answered (S92).
    """

    lease: Micros = 12 * SECOND
    renew_every: Micros = 4 * SECOND
    shutdown_deadline: Micros = 30 * SECOND
    processes: int = 1
    max_jobs: int | None = None
    max_memory: int | None = None
    max_crashes: int = MAX_CRASHES
    max_abandoned: int = 8
    stalled_after: Micros = 600 * SECOND
    sigint: Sigint = "graceful"
    unknown_task: UnknownTaskAction = "hand_back"
    duties: bool = True
    children: int | None = None
    child_max_jobs: int | None = None
    child_max_memory: int | None = None
    child_max_age: Micros | None = HOUR
    health_host: str = "127.0.0.1"
    health_port: int | None = None
