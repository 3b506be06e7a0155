"""Test an application with its real tasks: a separate store, real claims and settlements, a manual clock.

Nothing runs by itself: the test runs the enqueued jobs, in its own thread, and the store's clock stands still
until the test advances it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Generator, Mapping
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, Self

from fairlane.app.ambient import refuse_in_handler, require_tenant, scope_for
from fairlane.app.fairlane import Fairlane
from fairlane.app.job import Job
from fairlane.app.resources import OpenResources
from fairlane.app.task.tasks import Task
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.duties.schedules.fire import Fire
from fairlane.model.checking import instance, refuse
from fairlane.model.errors import FairlaneError
from fairlane.model.instants import Duration, Instant, Micros, to_datetime, to_instant, to_micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import Undecodable
from fairlane.model.policy.declared import Lane
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.jobs import ExplainRequest, FindRequest
from fairlane.store.contract.policies import ListRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request
from fairlane.store.contract.schedules import SchedulesListRequest
from fairlane.store.contract.upkeep import DedicateRequest
from fairlane.store.opening import open_store
from fairlane.worker.attempts.arguments import read_arguments
from fairlane.worker.worker import WorkerRuntime

TESTS: Final = "tests"
"""The purpose that a store must be dedicated to before a trial uses it."""

_REFUSED: Final = "the store is not for tests; dedicate an empty one with fairlane.testing.dedicate"

_FOR_ALL: Final = "a trial runs the jobs of all tenants"

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 (a folder of its own inside)


class NotForTests(FairlaneError):  # noqa: N818 (says more than "error")
    """The store is not dedicated to tests, so nothing was done to it."""


class Trial:
    """An application under test. Inside `with` or `async with`, its jobs go to the test's store.

    Without a `url` that is a temporary SQLite file. A given store must be dedicated to tests with `dedicate`,
    so that a test never touches real jobs. `at` is the time at which the store's clock starts. In async tests
    use the async twins, whose names start with `a`.
    """

    def __init__(self, app: Fairlane, url: str | None = None, *, at: datetime | None = None) -> None:
        instance("app", app, Fairlane, "a Fairlane(...)")
        instance("url", url, str, "a text", is_optional=True)
        instance("at", at, datetime, "a datetime with a time zone", is_optional=True)
        if at is not None and at.utcoffset() is None:
            refuse("at", at, "a datetime with a time zone, or None")
        self.app = app
        self._url = url
        self._time = _Time(MachineClock().wall() if at is None else to_instant(at))
        self._folder: Path | None = None

    # ── life ──────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        self._divert()
        try:
            self.app.client.portal.run(self._check_purpose())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.app.close()
        self._restore()

    async def __aenter__(self) -> Self:
        self._divert()
        try:
            await self._check_purpose()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.app.aclose()
        self._restore()

    def _divert(self) -> None:
        refuse_in_handler(_FOR_ALL)
        url = self._url
        if url is None:
            self._folder = Path(mkdtemp(prefix="fairlane-", dir=_MEMORY if _MEMORY.is_dir() else None))
            url = f"sqlite:///{self._folder}/fairlane.db?synchronous=normal"
        self.app.client.divert(url, self._time)

    async def _check_purpose(self) -> None:
        upkeep, everybody = self.app.client.store.upkeep, Scope.all()
        if self._url is None:
            await upkeep.dedicate(DedicateRequest(scope=everybody, purpose=TESTS))
        if await upkeep.purpose(Request(scope=everybody)) != TESTS:
            raise NotForTests(_REFUSED)

    def _restore(self) -> None:
        self.app.client.divert(None, None)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # ── time ──────────────────────────────────────────────────────────────────

    @property
    def now(self) -> datetime:
        """The time of the store's clock."""
        return to_datetime(self._time.now())

    def advance(self, duration: Duration) -> None:
        """Advance the store's clock; this runs nothing."""
        self._time.move(to_micros(duration))

    # ── running ───────────────────────────────────────────────────────────────

    def run(self, *, ahead: Duration = 0, slots: int = 1) -> int:
        """Run all due jobs, and the jobs they enqueue, in fair order; return how many attempts ended.

        Schedules that are due make their jobs. The application's resources are opened before the first and
        closed after the last. What happens is told to the application's subscribers, whose jobs run as well.

        With `ahead`, the clock advances by that much, and jobs that become due meanwhile (retries, delays,
        slots of schedules, starts held by a rate) run at their time. `slots` jobs run at once.
        """
        refuse_in_handler(_FOR_ALL)
        with require_tenant():
            return asyncio.run(self._run_and_close(ahead, slots))

    async def arun(self, *, ahead: Duration = 0, slots: int = 1) -> int:
        """Run all due jobs in the running event loop; see `run`."""
        refuse_in_handler(_FOR_ALL)
        began_at, distance = self._time.now(), to_micros(ahead)
        self._time.check(distance)
        async with OpenResources(self.app.client.resources) as resources:
            ended = await self._work(slots, resources)
            while (due_at := await self._next_due()) is not None and due_at <= began_at + distance:
                self._time.move(max(0, due_at - self._time.now()))
                ended += await self._work(slots, resources)
        self._time.move(max(0, began_at + distance - self._time.now()))
        return ended

    async def _run_and_close(self, ahead: Duration, slots: int) -> int:
        try:
            return await self.arun(ahead=ahead, slots=slots)
        finally:
            await self.app.client.aclose_here()

    async def _work(self, slots: int, resources: OpenResources) -> int:
        """Run what is due, and the jobs of subscribers to what happens meanwhile."""
        ended = await self._burst(slots, resources)
        while await self._fire():
            ended += await self._burst(slots, resources)
        tell = TellEvents(self.app.settings)
        while any(task.events for task in self.app.client.registry):
            while await tell(self.app.client.store) == 0:
                pass
            told = await self._burst(slots, resources)
            ended += told
            if not told:
                break
        return ended

    async def _fire(self) -> bool:
        """Let schedules make the jobs of their slots that are due; whether any was."""
        is_declared = self.app.settings.tenancy == "declared"
        fire, is_due = Fire(self.app.client.clock, must_be_declared=is_declared), False
        while await fire(self.app.client.store) == 0:
            is_due = True
        return is_due

    async def _burst(self, slots: int, resources: OpenResources) -> int:
        lane = Lane("trial", slots, await self._queues())
        worker = WorkerRuntime(self.app, lanes=[lane], burst=True, duties=False, resources=resources)
        await worker.run()
        return worker.settled

    async def _queues(self) -> tuple[str, ...]:
        """Return every queue that may hold a job, whatever lanes the application has."""
        known = await self.app.client.store.policies.list(
            ListRequest(scope=Scope.all(), kind=SubjectKind.QUEUE, limit=MAX_PAGE_SIZE)
        )
        homes = (task.queue for task in self.app.client.registry)
        return tuple(dict.fromkeys([*self.app.settings.queues, *homes, *(one.subject.name for one in known)]))

    async def _next_due(self) -> Instant | None:
        """Return when the next job becomes due: a delayed one, or one that a rate or a pause holds."""
        waiting = await self._records(frozenset({State.DELAYED, State.READY}), Scope.all())
        dues = [job.run_at for job in waiting if job.state is State.DELAYED]
        heads = {(job.queue, job.tenant, job.task): job.id for job in waiting if job.state is State.READY}
        for id in heads.values():
            why = await self.app.client.store.jobs.explain(ExplainRequest(scope=Scope.all(), id=id))
            dues += [why.until] if why is not None and why.until is not None else []
        request = SchedulesListRequest(scope=Scope.all(), limit=MAX_PAGE_SIZE)
        rows = (await self.app.client.store.schedules.list(request)).rows
        dues += [row.record.next_at for row in rows if row.record.next_at is not None]
        return min((due_at for due_at in dues if due_at > self._time.now()), default=None)

    async def _records(self, states: frozenset[State], scope: Scope) -> list[JobRecord]:
        found: list[JobRecord] = []
        cursor: str | None = None
        while True:
            request = FindRequest(scope=scope, states=states, limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self.app.client.store.jobs.find(request)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found[::-1]

    # ── looking ───────────────────────────────────────────────────────────────

    def jobs(
        self, task: Task[..., Any] | None = None, *, tenant: str | None = None, **arguments: Any
    ) -> list[Job[Any]]:
        """Return the jobs of this task and tenant whose arguments include these, oldest first."""
        return self.app.client.portal.run(self.ajobs(task, tenant=tenant, **arguments))

    async def ajobs(
        self, task: Task[..., Any] | None = None, *, tenant: str | None = None, **arguments: Any
    ) -> list[Job[Any]]:
        """Return the jobs of this task and tenant whose arguments include these, oldest first."""
        found = await self._records(frozenset(), scope_for(tenant))
        return [self.app.client.show(job) for job in found if self._is_wanted(job, task, arguments)]

    def _is_wanted(self, job: JobRecord, task: Task[..., Any] | None, arguments: Mapping[str, Any]) -> bool:
        declared = self.app.client.registry.find(job.task)
        if task is not None and (declared is None or declared.name != task.name):
            return False
        if not arguments:
            return True
        try:
            stored = {} if declared is None else read_arguments(job, declared)
        except Undecodable:
            return False  # newer than this application, or damaged: not these arguments in any case
        return all(name in stored and stored[name] == value for name, value in arguments.items())

    def one(
        self, task: Task[..., Any] | None = None, *, tenant: str | None = None, **arguments: Any
    ) -> Job[Any]:
        """Return the only job that matches, as in `jobs`; AssertionError if there is none or several."""
        return _only(self.jobs(task, tenant=tenant, **arguments), task, tenant, arguments)

    async def aone(
        self, task: Task[..., Any] | None = None, *, tenant: str | None = None, **arguments: Any
    ) -> Job[Any]:
        """Return the only job that matches, as in `jobs`; AssertionError if there is none or several."""
        return _only(await self.ajobs(task, tenant=tenant, **arguments), task, tenant, arguments)


def assert_state(job: Job[Any], state: State) -> None:
    """Raise AssertionError, with the error of the job's last attempt, unless the job is in this state."""
    if job.state is state:
        return
    lines = [f"job {job.id} of task {job.task} is {job.state.value}, not {state.value}"]
    if job.because:
        lines.append(f"because: {job.because}")
    failed = [attempt for attempt in job.attempts if attempt.message is not None]
    if failed:
        lines.append(f"{failed[-1].error_type}: {failed[-1].message}\n{failed[-1].traceback or ''}")
    raise AssertionError("\n".join(lines))


async def dedicate(url: str) -> None:
    """Dedicate an empty store to tests, for good; `NotForTests` if it holds jobs or has another purpose."""
    refuse_in_handler("a store is there for all tenants")
    store = open_store(url)
    try:
        await store.upkeep.migrate()
        await store.upkeep.dedicate(DedicateRequest(scope=Scope.all(), purpose=TESTS))
    except ValueError as error:
        raise NotForTests(str(error)) from error
    finally:
        await store.upkeep.aclose()


def fixture(app: Fairlane, **options: Any) -> Any:
    """Return a pytest fixture that is a `Trial` of this application; for a conftest.py."""
    import pytest  # noqa: PLC0415 (only tests have it)

    @pytest.fixture
    def trial() -> Generator[Trial]:
        with Trial(app, **options) as entered:
            yield entered

    return trial


class _Time:
    """The manual clock of the store."""

    def __init__(self, now: Instant) -> None:
        self._now = now

    def now(self) -> Instant:
        """Return the time."""
        return self._now

    def move(self, duration: Micros) -> None:
        """Advance the clock; it never goes back."""
        self.check(duration)
        self._now += duration

    def check(self, duration: Micros) -> None:
        """Refuse a negative duration."""
        if duration < 0:
            message = "time does not go back"
            raise ValueError(message)


def _only(
    found: list[Job[Any]], task: Task[..., Any] | None, tenant: str | None, arguments: Mapping[str, Any]
) -> Job[Any]:
    if len(found) == 1:
        return found[0]
    wanted = [] if task is None else [f"of task {task.name}"]
    wanted += [] if tenant is None else [f"of tenant {tenant}"]
    wanted += [f"with {name}={value!r}" for name, value in arguments.items()]
    listed = "".join(f"\n  {job.id} {job.task} {job.tenant} {job.state.value}" for job in found)
    raise AssertionError(f"{len(found)} jobs {' '.join(wanted)}, not one{listed}")
