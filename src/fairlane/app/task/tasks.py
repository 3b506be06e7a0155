"""Declare handlers as tasks, and turn calls of a task into jobs. Sends nothing itself: the client does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Never,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
    overload,
)
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from fairlane.app.client import Client
from fairlane.app.enqueue import suggestions
from fairlane.app.enqueue.call import NO_OPTIONS, Call, Options
from fairlane.app.job import Job, Json
from fairlane.app.portal import run_here
from fairlane.app.schedules.declarations import ScheduleRegistry, declare_schedule
from fairlane.app.schedules.options import DeclarationOptions
from fairlane.app.settings import DEFAULT_QUEUE
from fairlane.app.task.context import Context
from fairlane.app.task.declaration import (
    Declaration,
    Isolation,
    OnBadResult,
    OnShutdown,
    TaskRegistry,
    declare,
)
from fairlane.app.task.handler import task_name_of
from fairlane.app.task.subscriber import SubscriberOptions, checked_kinds
from fairlane.model.checking import is_text, refuse, shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import Classifier
from fairlane.model.instants import Duration
from fairlane.model.job import DedupUntil, OnDuplicate, OnStuck
from fairlane.model.names import name_hint, task_hint
from fairlane.model.policy.declared import Breaker, Budget, Gate
from fairlane.model.policy.limits import Rate
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.retry.own_delay import RetryDelay

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
E = TypeVar("E", bound=Mapping[str, Any])
T = TypeVar("T", bound="Task[..., Any]")

Upcast: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Task(Generic[P, R_co]):
    """A registered handler. `enqueue()` takes the handler's arguments, `using()` takes the job's options.

    A task is not callable: `task(...)` would run nothing later. `func` is the plain function.
    """

    __slots__ = ("_options", "_tasks", "declared")

    def __init__(self, declared: Declaration, tasks: Tasks, options: Options = NO_OPTIONS) -> None:
        self.declared = declared
        self._tasks = tasks
        self._options = options

    @property
    def name(self) -> str:
        """The name under which jobs of this task are stored."""
        return self.declared.name

    @property
    def queue(self) -> str:
        """The task's home queue."""
        return self.declared.queue

    @property
    def func(self) -> Callable[..., Any]:
        """The undecorated function, to call it directly in a unit test."""
        return self.declared.handler.func

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    if not TYPE_CHECKING:  # a checker would take a task for a function, and these for attributes

        def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
            """Raise TypeError, which says what to write instead."""
            raise TypeError(suggestions.called(self.name))

        def __dir__(self) -> list[str]:
            """Leave out the names that only raise."""
            return [name for name in super().__dir__() if name not in suggestions.FOREIGN_NAMES]

        # Not with `__getattr__`, which would slow down every other attribute. Python reports typos itself.
        vars().update({name: suggestions.ForeignName(name) for name in suggestions.FOREIGN_NAMES})

    def using(
        self,
        *,
        tenant: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        expires_at: datetime | None = None,
        expires_in: Duration | None = None,
        idempotency_key: str | None = None,
        on_duplicate: OnDuplicate | None = None,
        dedup_key: str | None = None,
        correlation_id: str | None = None,
        created_by: str | None = None,
        parent: UUID | Job[Any] | None = None,
        max_attempts: int | None = None,
        timeout: Duration | UnsetType | None = UNSET,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Json] | None = None,
        connection: Any = None,
        **unknown: Never,
    ) -> Task[P, R_co]:
        """Return a copy of this task with these options added to those it has.

        - `tenant`, `queue`: whose job it is, where it waits; by default the ambient tenant, the home queue.
        - `priority`: -100 to 100, within the jobs of the tenant.
        - `run_at` or `delay`: when the first attempt may start.
        - `expires_at` or `expires_in`: when no attempt may start any more; a waiting job is then cancelled.
        - `idempotency_key`: an enqueue with a known key returns the first job; `on_duplicate` may also be
          `raise` or `replace_dead`.
        - `dedup_key`: one unfinished job per tenant, task and key; an enqueue returns the existing one.
        - `correlation_id`, `created_by`, `parent`: what the job belongs to, who asked for it, and the job
          that led to it. Inside a handler they come from the running job.
        - `max_attempts`, `timeout`: instead of the task's. A `timeout` of None means no timeout.
        - `tags`, `metadata`: labels to find the job by, and JSON values of your own.
        - `connection`: store the job in the transaction that is open on this connection.

        None means "not given", except for `timeout`. Options are checked when a job is enqueued, so that one
        error lists every problem.
        """
        if unknown:
            raise TypeError(suggestions.options(unknown))
        # Fast path, twice as fast: enqueueing for many tenants sets the tenant of each job and nothing else.
        is_tenant_all = (
            queue is None and priority is None and run_at is None and delay is None and expires_at is None
            and expires_in is None and idempotency_key is None and on_duplicate is None and dedup_key is None
            and correlation_id is None and created_by is None and parent is None and max_attempts is None
            and timeout is UNSET and tags is None and metadata is None and connection is None
        )  # fmt: skip
        if is_tenant_all and isinstance(tenant, str):
            return Task(self.declared, self._tasks, replace(self._options, tenant=tenant))
        options = self._options.with_options(
            tenant=tenant,
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            expires_at=expires_at,
            expires_in=expires_in,
            idempotency_key=idempotency_key,
            on_duplicate=on_duplicate,
            dedup_key=dedup_key,
            correlation_id=correlation_id,
            created_by=created_by,
            parent=parent,
            max_attempts=max_attempts,
            timeout=timeout,
            tags=tags,
            metadata=metadata,
            connection=connection,
        )
        return Task(self.declared, self._tasks, options)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """Return a call without enqueueing it; TypeError if the arguments do not fit the handler."""
        return Call(self.declared, self._options, self.declared.handler.bind(args, kwargs))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store one job and return it, or the existing job with the same key (then `created` is False)."""
        run = self._tasks.client.portal.run if self._options.connection is UNSET else run_here
        return run(self.aenqueue(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store one job and return it, or the existing job with the same key (then `created` is False)."""
        (job,) = await self._tasks.client.aenqueue([self.bind(*args, **kwargs)], is_batch=False)
        return job

    def upcast(self, from_version: int) -> Callable[[Upcast], Upcast]:
        """Register a function that converts the arguments of one version to those of the next."""
        if from_version >= self.declared.version:
            message = f"it is version {self.declared.version}, so nothing is upcast from {from_version}"
            raise ConfigError(message, key=f"task {self.name}")

        def add(fn: Upcast) -> Upcast:
            self.declared.upcasters.add(from_version, fn)
            return fn

        return add


class TaskDecorator(Protocol):
    """The type of `task(...)` with options: a decorator that keeps the handler's parameters and result."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Task[P, R]: ...


class EventDecorator(Protocol):
    """The type of `on_event(...)`: a decorator of a function whose one argument is the event."""

    @overload
    def __call__(self, fn: Callable[[Context, E], object], /) -> Task[[E], Any]: ...
    @overload
    def __call__(self, fn: Callable[[E], object], /) -> Task[[E], Any]: ...


class Tasks:
    """A collection of tasks without an application; `app.include(tasks)` adds it to one.

    Use it in modules that the application imports: it breaks the import cycle. `prefix` is put in front of
    every task's name as it is, without a separator. `queue` is the home queue of tasks that name none.
    """

    def __init__(self, *, prefix: str = "", queue: str | None = None) -> None:
        if not is_text(prefix) or task_hint(f"{prefix}x") is not None:
            refuse("prefix", prefix, "text that task names may begin with, such as 'shop.'")
        if queue is not None and name_hint(queue) is not None:
            refuse("queue", queue, f"a legal name ({name_hint(queue)}), or None")
        self.registry = TaskRegistry()
        self.schedule_registry = ScheduleRegistry()
        self._prefix = prefix
        self._queue = queue
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client of the application that these tasks belong to; `ConfigError` before `include`."""
        if self._client is None:
            message = "it belongs to no application yet; bring its Tasks in with app.include(...)"
            raise ConfigError(message, key="task")
        return self._client

    def join(self, client: Client) -> None:
        """Add these tasks, and those declared later, to an application. Called by `app.include`."""
        if self._client is not None and self._client is not client:
            raise ConfigError("these tasks belong to another application already", key="include")
        client.registry.add(*self.registry)
        client.schedule_registry.add(*self.schedule_registry)
        self._client = client

    @overload
    def task(self, fn: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, fn: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        version: int = 1,
        queue: str | None = None,
        priority: int | None = None,
        timeout: Duration | UnsetType | None = UNSET,
        soft_timeout: Duration | None = None,
        stuck_after: Duration | None = None,
        on_stuck: OnStuck | None = None,
        max_attempts: int | None = None,
        retry: RetryPolicy | None = None,
        retry_delay: RetryDelay | None = None,
        classify: Classifier | None = None,
        gate: str | Gate | None = None,
        breaker: str | Breaker | None = None,
        budget: str | Budget | None = None,
        rate: Rate | None = None,
        system: bool = False,
        at_most_once: bool = False,
        keep_result: bool = True,
        on_bad_result: OnBadResult = "drop",
        on_shutdown: OnShutdown = "finish",
        dedup_until: DedupUntil = "settled",
        isolation: Isolation = "auto",
        max_memory: int | str | None = None,
        sensitive: Iterable[str] = (),
        category: str | None = None,
    ) -> TaskDecorator: ...
    def task(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a function as the handler of a task: `@app.task`, or `@app.task(...)` with options.

        - `name`, `aliases`: the name that jobs store, by default module and function; further names under
          which stored jobs are still found. Danger: renaming a function without an alias orphans its jobs.
        - `version`: raise it when the parameters change, and convert stored arguments with `Task.upcast`.
        - `queue`, `priority`, `timeout`, `max_attempts`: defaults of its jobs, where a call gives none.
        - `soft_timeout`: when `SoftTimeout` is raised in the handler, before `timeout` stops it.
        - `stuck_after`, `on_stuck`: how old a claim may be while its worker reports, by default twice the
          timeout, and whether such a job is `dead` or put back (`requeue`); by default as its queue says.
        - `retry`, `classify`: delays between attempts, and a function from exception to `ErrorClass`.
        - `retry_delay`: a function from exception and number of failures to the delay of a retry, at most a
          day; None for that of `retry`. It must be quick: it runs where the handler's error is read.
        - `gate`, `rate`, `breaker`, `budget`: bounds on running jobs, starts, outages and spending.
        - `system`: the handler acts for all tenants, and its jobs belong to the tenant `system`.
        - `at_most_once`: an attempt that is lost with its worker makes the job dead; it is not run again.
        - `keep_result`, `on_bad_result`: whether to store results; what to do with one that cannot be stored.
        - `on_shutdown`: at the shutdown deadline, `finish` stops a running job, which is a failure, and
          `requeue` hands it back.
        - `dedup_until`: whether a `dedup_key` is free when the job has `started` or when it has `settled`.
        - `isolation`: `process` runs the handler in a child process of the worker, one job at a time in each.
        - `max_memory`: the most memory of that process and what it starts, in bytes or as `"400MB"`.
        - `sensitive`: arguments that hold secrets although their names do not look like it.
        - `category`: one of `payload.categories`, which says what arguments its jobs must have.

        `ConfigError` if the function cannot be a handler, an option is out of range, or the name is taken.
        """
        if fn is not None:
            return self._declare(fn, **options)

        def decorate(fn: Callable[..., Any], /) -> Task[..., Any]:
            return self._declare(fn, **options)

        return decorate

    def on_event(self, *kinds: str, **options: Unpack[SubscriberOptions]) -> EventDecorator:
        """Register a function as a task that gets one job for each event of these kinds.

        Its one argument is the event, an `EventData`; a `Context` may come before it. The jobs belong to the
        tenant `system` and are those of any task otherwise: `options` are the options of `task`, and `queue`
        is where they wait. `ConfigError` if there is no such kind of event.
        """
        events = checked_kinds(kinds)

        def decorate(fn: Callable[..., Any], /) -> Any:
            return self._declare(fn, events=events, system=True, **options)

        return cast("EventDecorator", decorate)

    def schedule(self, cron: str | None = None, **options: Unpack[DeclarationOptions]) -> Callable[[T], T]:
        """Declare a schedule of a task, above its decorator: `@app.schedule("0 9 * * 1")`, then `@app.task`.

        Exactly one of `cron`, `every` and `at` says when. Times without a zone are those of `timezone`.

        - `name`: by default that of the task. `arguments`: those of each job, by name.
        - `timezone`: by default UTC. `between`, `weekdays`, `holidays`: when it runs at all.
        - `missing`, `repeated`: what of local times that a change of the clock leaves out or repeats.
        - `days`: whether day of month `or` day of week must match, or both (`and`).
        - `starts`, `ends`: between which instants. An interval counts from `starts`, else from 1970.
        - `catch_up`, `look_back`: which missed slots it makes up for: `skip`, `latest` or so many; how old.
        - `overlap`: what happens while an earlier job is not done: `allow`, `skip` or `queue_one`.
        - `unique_for`: a slot that comes sooner after the one before is skipped.
        - `pause_after`: pause it after so many dead jobs in a row.
        - `tenant`, or `for_tenants`: labels; then every declared tenant with them gets a job of each slot.
        - `spread`: start the jobs of a slot over this time instead of at once.
        - `queue`, `priority`, `max_attempts`, `timeout`, `expires_in`, `tags`, `metadata`: of its jobs.
        - `note`: what others should know.

        A worker writes it to the store when it starts. `ConfigError` if its times are wrong or its name is
        taken.
        """

        def decorate(task: T) -> T:
            declared = declare_schedule(getattr(task, "declared", None), {"cron": cron, **options})
            if self._client is not None:
                self._client.schedule_registry.add(declared)
            self.schedule_registry.add(declared)
            return task

        return decorate

    def _declare(self, fn: Callable[..., Any], /, **options: Any) -> Task[..., Any]:
        if isinstance(fn, Task):
            raise ConfigError("it is a task already; decorate the function that does the work", key="task")
        own, queue = options.pop("name", None), options.pop("queue", None)
        if own is not None and task_hint(own) is not None:
            raise ConfigError(f"name {shown(own)} is not a legal name; {task_hint(own)}", key="task")
        name = self._prefix + (task_name_of(fn) if own is None else own)
        queue = (self._queue or DEFAULT_QUEUE) if queue is None else queue
        declared = declare(fn, name, queue, **options)
        if self._client is not None:
            self._client.registry.add(declared)
        self.registry.add(declared)
        return Task(declared, self)
