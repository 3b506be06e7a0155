"""The application: its settings, its tasks, its store. Only joins the parts; each does its own work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from fairlane.app.ambient import as_system, as_tenant
from fairlane.app.by_name import call_by_name
from fairlane.app.call import Call
from fairlane.app.client import Client, TenantContext
from fairlane.app.config.configuration import Configuration
from fairlane.app.form import connection_of, taken_from
from fairlane.app.gates import Gates
from fairlane.app.job import Job
from fairlane.app.jobs import Jobs
from fairlane.app.published import PublishedTasks
from fairlane.app.queues import Queues
from fairlane.app.settings import Direction, PayloadSettings, Settings, settings_of
from fairlane.app.sync import run_here
from fairlane.app.tasks import Tasks
from fairlane.app.tenants import Tenants
from fairlane.app.workers import Workers
from fairlane.model.errors import ConfigError
from fairlane.model.policy import Gate, Lane, Queue, Tenancy


class Fairlane(Tasks):
    """An application's jobs in one store. Making one opens and reads nothing; the first call does.

    `url` names the store. `config` names the file to read, or is its content; else the file is what
    FAIRLANE_CONFIG names, or ./fairlane.toml. If queues are declared, jobs go to these and to `default` only;
    if none are, a task declares its home by naming it. `payload` is the table of that name.
    """

    jobs: Jobs
    queues: Queues
    tenants: Tenants
    tasks: PublishedTasks
    gates: Gates
    workers: Workers

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str = "fairlane",
        config: Path | str | Mapping[str, Any] | None = None,
        namespace: str | None = None,
        queues: Sequence[Queue] = (),
        lanes: Sequence[Lane] = (),
        gates: Sequence[Gate] = (),
        tenancy: Tenancy = "open",
        imports: Sequence[str] = (),
        fixed_queues: bool = False,
        priority: Direction = "higher_first",
        priority_default: int = 0,
        payload: PayloadSettings | None = None,
    ) -> None:
        super().__init__()
        code = settings_of(
            url=url,
            name=name,
            namespace=namespace,
            queues=queues,
            lanes=lanes,
            gates=gates,
            tenancy=tenancy,
            imports=imports,
            fixed_queues=fixed_queues,
            priority=priority,
            priority_default=priority_default,
            payload=payload,
        )
        self.configuration = Configuration(code, config)
        self.join(Client(self.configuration, self.registry))
        self.jobs = Jobs(self.client)
        self.queues = Queues(self.client)
        self.tenants = Tenants(self.client)
        self.tasks = PublishedTasks(self.client)
        self.gates = Gates(self.client)
        self.workers = Workers(self.client)

    @property
    def settings(self) -> Settings:
        """What holds for the application; `ConfigError` lists what is wrong with its file or environment."""
        return self.configuration.settings

    def include(self, *tasks: Tasks) -> None:
        """Bring in tasks that were declared elsewhere, and those that will be; names must not clash."""
        for one in tasks:
            one.join(self.client)

    def enqueue_many(self, calls: Iterable[Call[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Store all jobs or none, at most 1,000 and 16 MB; one job per call, in order (S12).

        With `connection` they are part of the transaction that is open there.
        """
        taken = taken_from(calls)
        run = self.client.portal.run if connection_of(taken, connection) is None else run_here
        return run(self.aenqueue_many(taken, connection=connection))

    async def aenqueue_many(self, calls: Iterable[Call[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Store all jobs or none, at most 1,000 and 16 MB; one job per call, in order (S12).

        With `connection` they are part of the transaction that is open there.
        """
        return await self.client.aenqueue(calls, connection)

    def enqueue_by_name(
        self, task: str, /, arguments: Mapping[str, Any], *, tenant: str, **options: Any
    ) -> Job[Any]:
        """Store a job of a task that workers have published, without its handler; options as in `using()`.

        The arguments are plain JSON values by name, typed and checked as was published: a text becomes the
        datetime, Decimal or Enum member that the handler's hints name. `UnknownTask` names the nearest one.
        """
        return self.client.portal.run(self.aenqueue_by_name(task, arguments, tenant=tenant, **options))

    async def aenqueue_by_name(
        self, task: str, /, arguments: Mapping[str, Any], *, tenant: str, **options: Any
    ) -> Job[Any]:
        """Store a job of a task that workers have published, without its handler; see `enqueue_by_name`."""
        call = await call_by_name(self.client, task, arguments, tenant, options)
        (job,) = await self.client.aenqueue([call], is_batch=False)
        return job

    def tenant(self, name: str, /) -> AbstractContextManager[None]:
        """Act for a tenant inside a `with` block: enqueues go to it, and only its jobs are seen.

        Inside another tenant this raises `TenantMismatch`.
        """
        return as_tenant(name)

    def as_system(self, *, reason: str) -> AbstractContextManager[None]:
        """Act for all tenants inside a `with` block; the reason is logged. The only way to, in a handler."""
        return as_system(reason)

    def tenant_context(self, enter: TenantContext, /) -> TenantContext:
        """Decorate the function whose context manager, plain or async, surrounds every attempt.

        It is entered before and left after each handler, in the same context, also on error, timeout and
        cancel: the place to point a database session or a logger at `ctx.tenant`.
        """
        if self.client.tenant_context is not None:
            raise ConfigError("there is one already; let it do both", key="tenant_context")
        self.client.tenant_context = enter
        return enter

    def close(self) -> None:
        """Close what plain calls have opened, and stop their thread. A later call opens anew."""
        self.client.close()

    async def aclose(self) -> None:
        """Close what this event loop and what plain calls have opened. A later call opens anew."""
        await self.client.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
