"""All child processes of one worker: the pool, the reserved child of the suspects, the guardian.

Connects these parts and ends them. Knows no settlement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlane.app.fairlane import Fairlane
from fairlane.app.task.declaration import Declaration, with_task_settings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.errors import ConfigError
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.runtime.clock import Clock
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.children import memory
from fairlane.worker.children.guardian_link import GuardianLink
from fairlane.worker.children.import_path import import_path_of
from fairlane.worker.children.launch import setup_for
from fairlane.worker.children.pool import ChildEnds, ChildPool, PoolLimits
from fairlane.worker.children.protocol import Setup, Start
from fairlane.worker.children.quarantine import Quarantine
from fairlane.worker.children.suspects import SuspectLine

CHECK_EVERY: Final[Micros] = SECOND // 4
_END_TIMEOUT: Final[Micros] = 2 * SECOND
"""How long idle children may take to end by themselves."""


class Children:
    """Runs attempts in child processes. Used in the worker's loop, except `leases_renewed`."""

    def __init__(
        self,
        app: Fairlane,
        worker: str,
        settings: WorkerSettings,
        *,
        slots: int,
        clock: Clock,
        ends: ChildEnds,
        store_now: Callable[[], Instant],
    ) -> None:
        self._app = app
        self._worker = worker
        self._settings = settings
        self._clock = clock
        self._import_path = import_path_of(app)
        self._guardian = GuardianLink()
        self.quarantine = Quarantine(worker, clock)
        limits = PoolLimits(
            min(slots, settings.children or slots),
            settings.child_max_jobs,
            settings.child_max_memory,
            settings.child_max_age,
        )
        one = limits._replace(children=1)
        self._store_now = store_now
        self._pool = ChildPool(self._setup, limits, clock, self._guardian, ends, self._start_of)
        self._reserved = ChildPool(self._setup, one, clock, self._guardian, ends, self._start_of)

    @property
    def can_run(self) -> bool:
        """Whether a child can import the application."""
        return self._import_path is not None

    def warm_up(self) -> None:
        """Start the first child if a task needs one."""
        if self._isolated():
            self._pool.warm_up()

    def refuse_impossible(self) -> None:
        """Raise `ConfigError` for a task that needs a child and could never have one."""
        isolated = self._isolated()
        if not isolated:
            return
        if not self.can_run:
            message = (
                'isolation="process" needs an application that a child process can import: define it at the '
                "top of a module, not in a script or a function, or start it with fairlane worker MODULE:APP"
            )
            raise ConfigError(message, key=f"task {isolated[0].name}")
        if any(task.max_memory is not None for task in isolated) and not memory.is_readable():
            message = "max_memory needs /proc, which this system does not have"
            raise ConfigError(message, key=f"task {isolated[0].name}")

    def _isolated(self) -> list[Declaration]:
        tasks = (with_task_settings(task, self._app.settings.tasks) for task in self._app.client.registry)
        return [task for task in tasks if task.isolation == "process"]

    def are_for(self, attempt: LiveAttempt) -> bool:
        """Whether an attempt runs in a child: its task asks for it, or is in quarantine. In any thread."""
        if attempt.declared.isolation == "process":
            return True
        return self.quarantine.has(attempt.claim.job.task) and self.can_run

    def run(self, attempt: LiveAttempt) -> None:
        """Run an attempt in a child."""
        self._pool.run(attempt)

    def suspect_line(self, start: Callable[[LiveAttempt], bool]) -> SuspectLine:
        """Return the line of suspects, who run alone in the reserved child."""
        return SuspectLine(self._reserved, start)

    def _setup(self) -> Setup:
        reports_memory = self._settings.child_max_memory is not None
        return setup_for(self._app, self._import_path or "", self._worker, reports_memory=reports_memory)

    def _start_of(self, attempt: LiveAttempt) -> Start:
        """Return the frame that starts an attempt, with what this worker knows at that moment."""
        claim = attempt.claim
        heard = self._app.client.breaker_memory.words_for(claim.job.tenant)
        return Start(claim.job, claim.fence, claim.lease_until, self._store_now(), heard)

    # ── upkeep ────────────────────────────────────────────────────────────────

    async def check(self) -> Micros:
        """Look after all children once; return the pause before the next time."""
        self._pool.check()
        self._reserved.check()
        self._guardian.check()
        return CHECK_EVERY

    def leases_renewed(self, good_for: Micros) -> None:
        """Tell the guardian for how long the leases are good. May be called from any thread."""
        self._guardian.leases_good_for(good_for)

    def pids(self) -> list[int]:
        """Return the child processes."""
        return [*self._pool.pids(), *self._reserved.pids()]

    def dump_stacks(self) -> None:
        """Let every child write its stacks to its output, which is logged with its tenant and job."""
        self._pool.dump_stacks()
        self._reserved.dump_stacks()

    async def aclose(self) -> None:
        """End all children: idle ones by themselves, the others at once. None is left when this returns."""
        pools = (self._pool, self._reserved)
        for pool in pools:
            pool.close()
        ends_at = self._clock.elapsed() + _END_TIMEOUT
        while not all(pool.is_empty() for pool in pools):
            if self._clock.elapsed() > ends_at:
                for pool in pools:
                    pool.kill_all()
            await self._clock.wait(SECOND // 100)
        self._guardian.close()
