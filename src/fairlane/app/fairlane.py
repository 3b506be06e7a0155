"""The application object that users create: settings, tasks, store. Connects the parts, decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from fairlane.app.access.sessions import Sessions
from fairlane.app.access.tokens import Tokens
from fairlane.app.access.users import Users
from fairlane.app.acting import as_actor
from fairlane.app.admin.breakers import Breakers
from fairlane.app.admin.budgets import Budgets
from fairlane.app.admin.duties import ReportedDuties
from fairlane.app.admin.gates import Gates
from fairlane.app.admin.jobs import Jobs
from fairlane.app.admin.published_tasks import PublishedTasks
from fairlane.app.admin.queues import Queues
from fairlane.app.admin.tenants import Tenants
from fairlane.app.admin.workers import Workers
from fairlane.app.ambient import as_system, as_tenant
from fairlane.app.client import Client, TenantContext
from fairlane.app.config.configuration import Configuration
from fairlane.app.dead.dead_letters import DeadLetters
from fairlane.app.enqueue.by_name import call_by_name
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.job_builder import connection_of, take_batch
from fairlane.app.guards.breaker_block import BreakerBlock
from fairlane.app.guards.declared import declared_breakers, find_breaker
from fairlane.app.history.history import History
from fairlane.app.job import Job
from fairlane.app.journals.audit import Audit
from fairlane.app.journals.events import Events
from fairlane.app.portal import run_here
from fairlane.app.resources import F, MakeResource, T
from fairlane.app.schedules.schedules import Schedules
from fairlane.app.settings import Direction, ErrorSettings, PayloadSettings, Settings, settings_of
from fairlane.app.task.tasks import Tasks
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Breaker, Budget, Gate, Lane, Queue, Tenancy


class Fairlane(Tasks):
    """One application: its tasks, and its jobs in one store.

    Creating it opens no connection and reads no file; the first call does both, so an application may be
    created at import time.

    `url` names the store. `config` is the path of the configuration file, or its content as a dict; without
    it the file is $FAIRLANE_CONFIG, else ./fairlane.toml if that exists. If `queues` are declared, jobs may
    only go to these and to `default`; without any, a task declares its queue by naming it. `payload` is the
    table `[payload]` as a dict.
    """

    jobs: Jobs
    queues: Queues
    tenants: Tenants
    tasks: PublishedTasks
    gates: Gates
    breakers: Breakers
    budgets: Budgets
    workers: Workers
    duties: ReportedDuties
    schedules: Schedules
    dead: DeadLetters
    history: History
    audit: Audit
    events: Events
    users: Users
    tokens: Tokens
    sessions: Sessions

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str = "fairlane",
        config: Path | str | Mapping[str, Any] | None = None,
        queues: Sequence[Queue] = (),
        lanes: Sequence[Lane] = (),
        gates: Sequence[Gate] = (),
        breakers: Sequence[Breaker] = (),
        budgets: Sequence[Budget] = (),
        tenancy: Tenancy = "open",
        imports: Sequence[str] = (),
        fixed_queues: bool = False,
        priority: Direction = "higher_first",
        priority_default: int = 0,
        payload: PayloadSettings | None = None,
        errors: ErrorSettings | None = None,
    ) -> None:
        super().__init__()
        code = settings_of(
            url=url,
            name=name,
            queues=queues,
            lanes=lanes,
            gates=gates,
            breakers=breakers,
            budgets=budgets,
            tenancy=tenancy,
            imports=imports,
            fixed_queues=fixed_queues,
            priority=priority,
            priority_default=priority_default,
            payload=payload,
            errors=errors,
        )
        self.configuration = Configuration(code, config)
        self.import_path: str | None = None  # MODULE:NAME, if a command line named it
        self.join(Client(self.configuration, self.registry))
        self._make_namespaces()

    def _make_namespaces(self) -> None:
        self.jobs = Jobs(self.client)
        self.queues = Queues(self.client)
        self.tenants = Tenants(self.client)
        self.tasks = PublishedTasks(self.client)
        self.gates = Gates(self.client)
        self.breakers = Breakers(self.client)
        self.budgets = Budgets(self.client)
        self.workers = Workers(self.client)
        self.duties = ReportedDuties(self.client)
        self.schedules = Schedules(self.client)
        self.dead = DeadLetters(self.client)
        self.history = History(self.client)
        self.audit = Audit(self.client)
        self.events = Events(self.client)
        self.users = Users(self.client)
        self.tokens = Tokens(self.client)
        self.sessions = Sessions(self.client)

    @property
    def settings(self) -> Settings:
        """The effective settings; `ConfigError` lists everything wrong with the file or the environment."""
        return self.configuration.settings

    def include(self, *tasks: Tasks) -> None:
        """Add the tasks of these `Tasks`, also those declared later; `ConfigError` if a name is taken."""
        for one in tasks:
            one.join(self.client)

    def enqueue_many(self, calls: Iterable[Call[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Store one job per call, all or none, and return the jobs in order (S12).

        A batch holds at most 1,000 jobs and 16 MB; `fairlane.chunks` cuts longer lists. With `connection`
        the jobs are part of the transaction open on that connection.
        """
        batch = take_batch(calls)
        run = self.client.portal.run if connection_of(batch, connection) is None else run_here
        return run(self.aenqueue_many(batch, connection=connection))

    async def aenqueue_many(self, calls: Iterable[Call[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Store one job per call, all or none, and return the jobs in order (S12).

        A batch holds at most 1,000 jobs and 16 MB; `fairlane.chunks` cuts longer lists. With `connection`
        the jobs are part of the transaction open on that connection.
        """
        return await self.client.aenqueue(calls, connection)

    def enqueue_by_name(
        self, task: str, /, arguments: Mapping[str, Any], *, tenant: str, **options: Any
    ) -> Job[Any]:
        """Store one job of a task that workers have published; its handler need not be importable here.

        `arguments` are plain JSON values by parameter name. They are checked against the published schema,
        and text becomes the datetime, Decimal or Enum member that the handler's type hint asks for. `options`
        are those of `Task.using`. `UnknownTask` suggests the closest published name.
        """
        return self.client.portal.run(self.aenqueue_by_name(task, arguments, tenant=tenant, **options))

    async def aenqueue_by_name(
        self, task: str, /, arguments: Mapping[str, Any], *, tenant: str, **options: Any
    ) -> Job[Any]:
        """Store one job of a task that workers have published; see `enqueue_by_name`."""
        call = await call_by_name(self.client, task, arguments, tenant, options)
        (job,) = await self.client.aenqueue([call], is_batch=False)
        return job

    def tenant(self, name: str, /) -> AbstractContextManager[None]:
        """Act for one tenant inside a `with` block: jobs are enqueued for it, and only its jobs are visible.

        Raises `TenantMismatch` inside another tenant's block or handler.
        """
        return as_tenant(name, self.client.journals)

    def as_system(self, *, reason: str) -> AbstractContextManager[None]:
        """Act for all tenants inside a `with` block; the reason is logged and audited.

        This is the only way for a handler to leave its tenant. Danger: nothing inside the block is scoped.
        """
        return as_system(reason, self.client.journals)

    def acting_as(self, name: str, /) -> AbstractContextManager[None]:
        """Record what a `with` block changes with this name: who acts, in the audit and in policies.

        Without it that is `FAIRLANE_ACTOR`, else the user and the host of this process. Inside a handler it
        is the handler's task.
        """
        return as_actor(name)

    def tenant_context(self, enter: TenantContext, /) -> TenantContext:
        """Register a function that returns a context manager, plain or async, to wrap around every attempt.

        It is entered before the handler and left after it, in the handler's own context, also after an
        error, a timeout or a cancellation. Use it to point a database session or a logger at `ctx.tenant`.
        An application has one; a second raises `ConfigError`.
        """
        if self.client.tenant_context is not None:
            raise ConfigError("there is one already; let it do both", key="tenant_context")
        self.client.tenant_context = enter
        return enter

    def breaker(self, name: str, /) -> BreakerBlock:
        """Pass a breaker for a `with` or `async with` block, which counts how the block ends (S110).

        Raises `BreakerOpen` while the breaker lets nobody pass; in a handler the job then comes back later,
        or the attempt fails, as the breaker says. `ConfigError` if no such breaker is declared.
        """
        return BreakerBlock(self.client, self._breaker(name))

    def _breaker(self, name: str) -> Breaker:
        found = self.client.breaker_memory.declared.get(name)
        if found is None:
            declared = declared_breakers(self.settings, self.client.registry)
            found = self.client.breaker_memory.declared[name] = find_breaker(name, declared, "app.breaker")
        return found

    def resource(self, kind: type[T], /) -> Callable[[MakeResource[T]], MakeResource[T]]:
        """Decorate the function that makes the resource of this kind, once in each process that runs jobs.

        It is a generator, plain or async, that yields the resource and closes it afterwards, or it returns a
        context manager. A worker opens all resources before it claims anything and closes them after its last
        job, in reverse order. Handlers get them by `ctx.resource(kind)`.
        """

        def decorate(make: MakeResource[T]) -> MakeResource[T]:
            self.client.resources.declare(kind, make)
            return make

        return decorate

    def on_startup(self, hook: F, /) -> F:
        """Run a function, plain or async, in each process that runs jobs, before its first job.

        It runs after all resources are open. If it raises, the worker does not start.
        """
        resources = self.client.resources
        resources.add_hook(resources.startups, "on_startup", hook)
        return hook

    def on_shutdown(self, hook: F, /) -> F:
        """Run a function, plain or async, in each process that runs jobs, after its last job.

        It runs before the resources are closed; the function that was declared last runs first.
        """
        resources = self.client.resources
        resources.add_hook(resources.shutdowns, "on_shutdown", hook)
        return hook

    def close(self) -> None:
        """Close the connections of blocking calls and stop their thread. A later call opens new ones."""
        self.client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and of blocking calls. A later call opens new ones."""
        await self.client.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
