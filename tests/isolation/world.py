"""Two tenants with jobs in every state, an outbox, and a handler of one of them that may call anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, cast

from fairlane import Fail, Fairlane, Job, Lane, Outbox, Relay, Task
from fairlane.app.ambient import require_tenant
from fairlane.duties.journals.seal_audit import SealAudit
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.outbox.relay import RelaySession
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadRequest
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.policies import ReadRequest
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker.worker import WorkerRuntime
from tests.oracle.clock import DrivenClock

SECRET: Final = "globex-secret"
OTHERS: Final = ("globex", "system")
PROBING: Final = Lane("probing", 1, ("probing",))
KEPT: Final = Lane("kept", 1, ("kept",))


class Scene:
    """What a handler can use: an application, and ids of another tenant."""

    url = "walls://here"
    lane = KEPT

    def __init__(self, app: Fairlane, folder: Path) -> None:
        """Declare the tasks; store nothing yet."""
        self.app = app
        self._outbox_file = folder / "outbox.db"
        self.note: Task[..., Any] = app.task(name="note", queue="kept")(_note)
        self.fails: Task[..., Any] = app.task(name="fails", queue="kept")(_fails)
        self.sweep: Task[..., Any] = app.task(name="sweep", queue="kept", system=True)(_sweep)

    async def fill(self) -> None:
        """Store jobs in every state and policies for both tenants and `system`, and a foreign outbox row."""
        app = self.app
        for tenant in ("globex", "acme"):
            await self.note.using(tenant=tenant).aenqueue(f"{tenant}-secret")
            await self.fails.using(tenant=tenant).aenqueue(f"{tenant}-secret")
        await WorkerRuntime(app, lanes=[KEPT], burst=True).run()
        (self.their_dead,) = (await app.dead.afind(tenant="globex")).items
        (self.my_dead,) = (await app.dead.afind(tenant="acme")).items
        note = self.note.using(tenant="globex")
        self.their_parent: Job[Any] = await note.using(correlation_id="globex-order").aenqueue(SECRET)
        self.theirs: Job[Any] = await note.using(parent=self.their_parent).aenqueue(SECRET)
        self.their_delayed: Job[Any] = await note.using(delay=3_600).aenqueue(SECRET)
        self.mine: Job[Any] = await self.note.using(tenant="acme").aenqueue("mine")
        await self.note.using(tenant="acme", delay=3_600).aenqueue("mine")
        await self.sweep.aenqueue()
        await app.tenants.aset("globex", weight=3, note=SECRET)
        await app.tenants.apause("globex", reason=SECRET)
        await app.queues.apause("kept", reason="held")
        for name, tenant in (("mine", "acme"), ("theirs", "globex")):
            text = {"text": f"{tenant}-secret"}
            await app.schedules.aadd(
                name, "note", "@yearly", tenant=tenant, arguments=text, note=f"{tenant}-secret"
            )
            await app.schedules.arun(name)
        await app.dead.anote(self.their_dead.id, SECRET)
        for duty in (SealAudit(app.settings.audit), TellEvents(app.settings)):
            while not await duty(app.client.store):
                pass
        with sqlite3.connect(self._outbox_file) as db:
            db.execute(Outbox.ddl())
            Outbox(app).add(db.execute, note.bind(SECRET))
        db.close()

    def outbox(self) -> sqlite3.Connection:
        """Open the application's own database."""
        return sqlite3.connect(self._outbox_file)

    def execute(self, sql: str, values: Any) -> None:
        """Add to the outbox, as a handler does."""
        with self.outbox() as db:
            db.execute(sql, values)
        db.close()

    def session(self) -> RelaySession:
        """Open a relay for single passes."""
        return Relay(self.app, self.outbox).session()

    def beside(self, app: Fairlane) -> Scene:
        """Open another application on the same jobs."""
        other = Scene(app, self._outbox_file.parent)
        for name in ("mine", "theirs", "their_parent", "their_delayed", "my_dead", "their_dead"):
            setattr(other, name, getattr(self, name))
        return other


class World:
    """One store behind the scheme `walls`, and what it keeps of other tenants than acme."""

    def __init__(self, url: str, folder: Path) -> None:
        """Open nothing."""
        self._url = url
        self._clock = DrivenClock()
        self.apps: list[Fairlane] = []
        register_scheme("walls", self._open)
        self.scene = Scene(self.app(), folder)

    def _open(self, url: str, clock: StoreClock | None) -> Store:
        return open_store(self._url, clock=clock or self._clock)

    def app(self) -> Fairlane:
        """Make an application on this store."""
        self.apps.append(Fairlane(Scene.url))
        return self.apps[-1]

    async def run_as_acme(self, handler: Callable[[], None] | Callable[[], Awaitable[None]]) -> None:
        """Run a function as the handler of a job of acme, in a real worker."""
        app = self.scene.app
        task = app.task(name="probe", queue="probing", max_attempts=1)(cast("Callable[[], None]", handler))
        await task.using(tenant="acme").aenqueue()
        with require_tenant():
            await WorkerRuntime(app, lanes=[PROBING], burst=True, duties=False).run()

    async def others(self) -> list[object]:
        """Return everything of other tenants, and what belongs to all."""
        store = self._open("", None)
        try:
            kept: list[object] = []
            for tenant in OTHERS:
                found = await store.jobs.find(FindRequest(scope=Scope(tenant), limit=1_000))
                letters = await store.dead.find(DeadRequest(scope=Scope(tenant), limit=1_000))
                kept += [found.jobs, letters.letters]
            subjects = [Subject(SubjectKind.TENANT, name) for name in (*OTHERS, EVERY)]
            subjects += [Subject(SubjectKind.QUEUE, "kept"), Subject(SubjectKind.TASK, "note")]
            policies = await store.policies.read(ReadRequest(scope=Scope.all(), subjects=tuple(subjects)))
            return [*kept, *policies.values()]
        finally:
            await store.upkeep.aclose()

    def outbox(self) -> list[str]:
        """Return whose rows wait in the outbox, other than acme's."""
        db = self.scene.outbox()
        found = db.execute("SELECT tenant FROM fairlane_outbox WHERE tenant <> 'acme'").fetchall()
        db.close()
        return [tenant for (tenant,) in found]


def _note(text: str) -> str:
    return text


def _fails(text: str) -> None:
    raise Fail(text)


def _sweep() -> None: ...
