"""Declare tasks and make calls of them: the typed face of a handler. Sends nothing itself."""

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
    overload,
)
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from fairlane.app import misuse
from fairlane.app.call import Call
from fairlane.app.client import Client
from fairlane.app.context import Context
from fairlane.app.declaration import Declaration, Isolation, OnBadResult, OnShutdown, Registry, declare
from fairlane.app.handler import name_of
from fairlane.app.job import Job, Json
from fairlane.app.options import NO_OPTIONS, Options
from fairlane.app.settings import DEFAULT_QUEUE
from fairlane.app.sync import run_here
from fairlane.model.checking import is_text, refuse, shown
from fairlane.model.errors import ConfigError
from fairlane.model.failure import Classifier
from fairlane.model.instants import Duration
from fairlane.model.job import DedupUntil, OnDuplicate
from fairlane.model.limits import Rate
from fairlane.model.names import name_hint, task_hint
from fairlane.model.policy import Breaker, Budget, Gate
from fairlane.model.retry import RetryPolicy

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Upcast: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Task(Generic[P, R_co]):
    """A registered handler, perhaps with options: `using()` takes them, a call takes its arguments."""

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
        """The plain function, for unit tests."""
        return self.declared.handler.func

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    if not TYPE_CHECKING:  # a checker would take a task for a function, and these for attributes

        def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
            """Say what to write instead."""
            raise TypeError(misuse.called(self.name))

        def __dir__(self) -> list[str]:
            """Name what is there."""
            return [name for name in super().__dir__() if name not in misuse.ELSEWHERE]

        # Not by `__getattr__`, which would make every other name slower. A misspelt one Python finds itself.
        vars().update({name: misuse.Elsewhere(name) for name in misuse.ELSEWHERE})

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
        parent: UUID | Job[Any] | None = None,
        max_attempts: int | None = None,
        timeout: Duration | UnsetType | None = UNSET,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Json] | None = None,
        connection: Any = None,
        **unknown: Never,
    ) -> Task[P, R_co]:
        """Give the same task with these options over those it has; this one stays as it is.

        None means "not given", except for `timeout`, where it means that there is none. Options are judged
        when a job is made of them. With `connection` a job is part of the transaction that is open there.
        """
        if unknown:
            raise TypeError(misuse.options(unknown))
        # Whoever enqueues for many tenants names the tenant and nothing else: half the time of the way below.
        is_tenant_all = (
            queue is None and priority is None and run_at is None and delay is None and expires_at is None
            and expires_in is None and idempotency_key is None and on_duplicate is None and dedup_key is None
            and correlation_id is None and parent is None and max_attempts is None and timeout is UNSET
            and tags is None and metadata is None and connection is None
        )  # fmt: skip
        if is_tenant_all and isinstance(tenant, str):
            return Task(self.declared, self._tasks, replace(self._options, tenant=tenant))
        options = self._options.under(
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
            parent=parent,
            max_attempts=max_attempts,
            timeout=timeout,
            tags=tags,
            metadata=metadata,
            connection=connection,
        )
        return Task(self.declared, self._tasks, options)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """Make a call without enqueueing it; TypeError if the arguments do not fit the handler."""
        return Call(self.declared, self._options, self.declared.handler.bind(args, kwargs))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store one job and give it, or the earlier job that answers for it (`created` is then False)."""
        run = self._tasks.client.portal.run if self._options.connection is UNSET else run_here
        return run(self.aenqueue(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store one job and give it, or the earlier job that answers for it (`created` is then False)."""
        (job,) = await self._tasks.client.aenqueue([self.bind(*args, **kwargs)], is_batch=False)
        return job

    def upcast(self, from_version: int) -> Callable[[Upcast], Upcast]:
        """Declare how arguments stored by an older version become those of the next one."""
        if from_version >= self.declared.version:
            message = f"it is version {self.declared.version}, so nothing is upcast from {from_version}"
            raise ConfigError(message, key=f"task {self.name}")

        def add(fn: Upcast) -> Upcast:
            self.declared.upcasters.add(from_version, fn)
            return fn

        return add


class TaskDecorator(Protocol):
    """What `task(...)` with options gives: it turns a handler into a task of the same parameters."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Task[P, R]: ...


class Tasks:
    """Tasks that belong to no application yet; `app.include(tasks)` brings them in. Breaks import cycles.

    `prefix` is put before every task's name as it stands; `queue` is the home of tasks that name none.
    """

    def __init__(self, *, prefix: str = "", queue: str | None = None) -> None:
        if not is_text(prefix) or task_hint(f"{prefix}x") is not None:
            refuse("prefix", prefix, "text that task names may begin with, such as 'shop.'")
        if queue is not None and name_hint(queue) is not None:
            refuse("queue", queue, f"a legal name ({name_hint(queue)}), or None")
        self.registry = Registry()
        self._prefix = prefix
        self._queue = queue
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The way to the store of the application that these tasks belong to."""
        if self._client is None:
            message = "it belongs to no application yet; bring its Tasks in with app.include(...)"
            raise ConfigError(message, key="task")
        return self._client

    def join(self, client: Client) -> None:
        """Belong to an application from now on, with the tasks that are still to come."""
        if self._client is not None and self._client is not client:
            raise ConfigError("these tasks belong to another application already", key="include")
        client.registry.add(*self.registry)
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
        max_attempts: int | None = None,
        retry: RetryPolicy | None = None,
        classify: Classifier | None = None,
        isolation: Isolation = "auto",
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
        sensitive: Iterable[str] = (),
    ) -> TaskDecorator: ...
    def task(self, fn: Callable[..., Any] | None = None, **said: Any) -> Any:
        """Register a handler as a task; bare, or called with options first.

        The name is the module's and the function's. `ConfigError` if the handler cannot be one, an option is
        out of range, or the name is taken.
        """
        if fn is not None:
            return self._declare(fn, **said)

        def decorate(fn: Callable[..., Any], /) -> Task[..., Any]:
            return self._declare(fn, **said)

        return decorate

    def _declare(self, fn: Callable[..., Any], /, **said: Any) -> Task[..., Any]:
        if isinstance(fn, Task):
            raise ConfigError("it is a task already; decorate the function that does the work", key="task")
        own, queue = said.pop("name", None), said.pop("queue", None)
        if own is not None and task_hint(own) is not None:
            raise ConfigError(f"name {shown(own)} is not a legal name; {task_hint(own)}", key="task")
        name = self._prefix + (name_of(fn) if own is None else own)
        queue = (self._queue or DEFAULT_QUEUE) if queue is None else queue
        declared = declare(fn, name, queue, **said)
        if self._client is not None:
            self._client.registry.add(declared)
        self.registry.add(declared)
        return Task(declared, self)
