"""A store in which every page has something to show, for two tenants, with texts that try to be markup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import UUID

import msgspec

from fairlane import Budget, Fairlane, Gate, Job, LaneStatus, SlotStatus, WorkerStatus
from fairlane.app.admin.worker_status import WorkerAnswer
from fairlane.app.task.record import task_record_of
from fairlane.app.task.rules import declared_rules
from fairlane.model.access import Role
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import AttemptResult, Failed, Succeeded, decide_settlement
from fairlane.model.schedule.records import FanOut, NewSlot, SlotState
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, SettleRequest
from fairlane.store.contract.mailbox import AnswerRequest, AskRequest, MailboxFacet
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, WorkerRecord
from fairlane.store.contract.schedules import (
    EndSlotsRequest,
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesWriteRequest,
    SlotEnd,
)
from fairlane.store.opening import register_scheme
from fairlane.web.page import WebPage
from fairlane.web.pages import PAGES
from tests.duties.journals.crew import sealer, teller
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.callers import NO_RATE

PAYLOAD: Final = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"
"""What would run, or change the page, if it were not escaped."""

SECRET: Final = "canary-5f0c2a"
"""What stands in a field that is secret by its name."""

MINE: Final = "acme"
FOREIGN: Final = "globex"
FOREIGN_WORD: Final = "foreignword"
"""A word that stands in everything of the other tenant, and in nothing else."""

WORKER: Final = "worker-1"

SLOT: Final = SlotStatus(
    lane="default",
    tenant=MINE,
    queue="mail",
    task="mail.send",
    job="01a1f46e-23b5-7637-9ee8-db5c24307d65",
    attempt=1,
    seconds=2.5,
    runs_in="loop",
)


class Scene:
    """An application on a filled store."""

    def __init__(self, app: Fairlane, store: Store, clock: DrivenClock, worker: PromptWorker) -> None:
        """Declare a task."""
        self.worker = worker
        self.app = app
        self.clock = clock
        self.store = store
        self.task = app.task(name="mail.send", queue="mail", gate="door")(send)
        self.jobs: dict[str, list[Job[Any]]] = {MINE: [], FOREIGN: []}

    async def fill(self) -> None:
        """Give both tenants jobs in every state, a dead letter with a note, a worker and a pause."""
        lane = LaneRecord("default", 4, ("mail",))
        record = WorkerRecord(
            id=WORKER,
            host="h",
            pid=1,
            version="1",
            queues=("mail",),
            slots=4,
            lanes=(lane,),
            tasks=tuple(task_record_of(one, self.app.settings) for one in self.app.client.registry),
        )
        request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
        await self.store.registry.register(request)
        await self.store.policies.put(PutRequest(scope=Scope.all(), rules=declared_rules(self.app)))
        for tenant, word in ((MINE, "own"), (FOREIGN, FOREIGN_WORD)):
            for ending in (
                Succeeded(encode_result(f"{word} {PAYLOAD}")),
                _failed(ErrorClass.RETRYABLE, word),
                _failed(ErrorClass.NON_RETRYABLE, word),
                None,
            ):
                await self._enqueue(tenant, word)
                await self._run(ending)
            await self._enqueue(tenant, word)
            cancelled = await self._enqueue(tenant, word)
            await cancelled.acancel(f"{word} {PAYLOAD}")
            with self.app.tenant(tenant):
                (letter,) = (await self.app.dead.afind()).items
                await self.app.dead.anote(letter.id, f"{word} {PAYLOAD}")
        await self.app.tenants.apause(FOREIGN, reason=f"{FOREIGN_WORD} {PAYLOAD}")
        await self.app.queues.apause("mail", reason="a hold of the queue")
        await self.app.tasks.apause("mail.send", reason=f"of the task {PAYLOAD}")
        await self.app.gates.aset("door", limit=2, note=f"of the gate {PAYLOAD}")
        await self._schedule()
        await self.tell()

    async def _schedule(self) -> None:
        """Give both tenants a schedule with slots of every kind, and all of them one that fails."""
        for tenant, word in ((MINE, "own"), (FOREIGN, FOREIGN_WORD)):
            await self.app.schedules.aadd(
                word,
                "mail.send",
                "30 2 * * *",
                timezone="Europe/Berlin",
                tenant=tenant,
                arguments={"to": word, "password": SECRET},
                tags=[f"{word} {PAYLOAD}"],
                metadata={"note": f"{word} {PAYLOAD}"},
                note=f"{word} {PAYLOAD}",
            )
            await self.app.schedules.arun(word, note="x")
            await self.app.schedules.aedit(word, priority=3, note=f"{word} {PAYLOAD}")
            await self._slots(word, tenant, word)
        await self.app.schedules.aadd(
            "every-tenant", "mail.send", every="5m", for_tenants={"plan": "pro"}, arguments={"to": "x"}
        )
        await self._slots("every-tenant", None, FOREIGN_WORD, problem=f"{FOREIGN_WORD} {PAYLOAD}")
        await self.app.schedules.aadd("quiet", "mail.send", "@daily", note="a note", arguments={"to": "x"})
        await self.app.schedules.apause("quiet", reason=f"{FOREIGN_WORD} {PAYLOAD}")

    async def _slots(self, name: str, tenant: str | None, word: str, problem: str = "") -> None:
        """Take slots of the past, one of each kind."""
        find = SchedulesFindRequest(scope=Scope.all(), names=(name,))
        reply = await self.store.schedules.find(find)
        (row,), because = reply.rows, f"{word} {PAYLOAD}"
        states: tuple[SlotState, ...] = ("pending", "skipped", "missed", "failed")
        slots = tuple(
            NewSlot(
                at=reply.now - number * SECOND, tenant=tenant, state=state, because=because, missed=number
            )
            for number, state in enumerate(states, 1)
        )
        record = msgspec.structs.replace(row.record, problem=problem)
        change = ScheduleChange(name=name, revision=row.revision, record=record, slots=slots)
        await self.store.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=(change,)))
        if tenant is None:
            progress = FanOut(cursor="x", enqueued=3, failed=1, exceptions=((FOREIGN, because),))
            end = SlotEnd(schedule=name, at=slots[0].at, state="enqueued", fan_out=progress)
            await self.store.schedules.end_slots(EndSlotsRequest(scope=Scope.all(), ends=(end,)))

    async def tell(self) -> None:
        """Let a leader number all events, and seal the audit up to now."""
        for duty in (teller(), sealer(key=None)):
            while not await duty(self.store):
                pass

    async def paths(self, page: WebPage, tenant: str) -> list[str]:
        """Return paths of a page that show things of a tenant."""
        if page.path.startswith(("/jobs/{id}", "/dead/{id}")):
            return [page.path.format(id=id) for id in await self._ids(page, tenant)]
        names = {"queue": "mail", "name": "mail", "tenant": tenant, "task": "mail.send", "worker": WORKER}
        if page.path == "/dead":
            with self.app.tenant(tenant):
                group = next(one for one in await self.app.dead.agroups() if one.fingerprint)
            return ["/dead", f"/dead?fingerprint={group.fingerprint}", *_QUERIES["/dead"]]
        if "{" not in page.path:
            return [page.path, *_QUERIES.get(page.path, ())]
        if page.path.startswith("/tenants"):
            names["name"] = tenant
        if page.path.startswith("/tasks"):
            names["name"] = "mail.send"
        if page.path.startswith("/schedules"):
            names["schedule"] = "own" if tenant == MINE else FOREIGN_WORD
        if page.path.startswith("/workers"):
            names |= {"name": WORKER, "id": WORKER}
        return [page.path.format(**names)]

    async def _ids(self, page: WebPage, tenant: str) -> list[UUID]:
        with self.app.tenant(tenant):
            if page.path.startswith("/dead"):
                return [one.id for one in (await self.app.dead.afind()).items]
            return [one.id for one in (await self.app.jobs.afind()).items]

    async def run_next(self) -> None:
        """Start the next job."""
        await self._run(None)

    async def _enqueue(self, tenant: str, word: str) -> Job[Any]:
        using = self.task.using(
            tenant=tenant,
            tags=[f"{word} {PAYLOAD}"],
            correlation_id=f"{word} {PAYLOAD}",
            created_by=f"{word} {PAYLOAD}",
            metadata={"note": f"{word} {PAYLOAD}"},
        )
        job = await using.aenqueue(f"{word} {PAYLOAD}", password=SECRET)
        self.jobs[tenant].append(job)
        return job

    async def _run(self, ending: AttemptResult | None) -> None:
        """Claim the next job and end it so; None leaves it running."""
        request = ClaimRequest(
            scope=Scope.all(),
            worker=WORKER,
            lease=60 * SECOND,
            queue_requests=(QueueRequest("mail", 1),),
            total=1,
        )
        (claim,) = (await self.store.claims.claim(request)).claims
        if ending is not None:
            settlement = decide_settlement(claim, ending, draw=0.5)
            settlement = msgspec.structs.replace(settlement, log=f"a line {PAYLOAD}")
            await self.store.claims.settle(
                SettleRequest(scope=Scope.all(), worker=WORKER, settlements=(settlement,))
            )


async def send(to: str, password: str = "") -> str:
    """Stand for a handler; attempts are ended by the scene."""
    return to + password


def all_pages() -> list[WebPage]:
    """Return every page that can be opened by its address."""
    return [page for group in PAGES for page in group if page.method == "GET"]


def roles() -> list[tuple[Role, str | None]]:
    """Return every role, of all tenants and of one."""
    return [(role, tenant) for role in Role for tenant in (None, MINE)]


@asynccontextmanager
async def filled(store_name: str) -> AsyncIterator[Scene]:
    """Open an empty store and fill it."""
    clock = DrivenClock()
    async with STORES[store_name](clock) as store:
        worker = PromptWorker(store.mailbox)
        register_scheme("scene", lambda *_: cast("Store", Lent(store, mailbox=worker)))
        app = Fairlane(
            "scene://here", gates=[Gate("door", 3)], budgets=[Budget("ai", 500, "USD")], config=NO_RATE
        )
        scene = Scene(app, store, clock, worker)
        try:
            await scene.fill()
            yield scene
        finally:
            await app.aclose()


class PromptWorker:
    """The mailbox of a store with a worker that answers every question at once. `asked` are their kinds."""

    def __init__(self, mailbox: MailboxFacet) -> None:
        """Stand before the real mailbox."""
        self._mailbox = mailbox
        self.asked: list[str] = []
        self.stacks = ""

    def __getattr__(self, name: str) -> Any:
        """Return what is not about asking."""
        return getattr(self._mailbox, name)

    async def ask(self, request: AskRequest) -> bool:
        """Take a question, and answer it."""
        is_asked = await self._mailbox.ask(request)
        self.asked.append(request.kind)
        status = WorkerStatus(
            id=WORKER,
            state="busy",
            slots=[SLOT],
            lanes=[LaneStatus(name="default", slots=4, running=1, waiting=2, pending=3)],
            abandoned=1,
            loop_lag=None,
            memory=61_000_000,
            settled=3,
            failed=1,
            cpu=0.42,
        )
        text = msgspec.json.encode(WorkerAnswer(status=status, text=self.stacks))
        answer = AnswerRequest(scope=Scope.all(), id=request.id, worker=WORKER, text=text)
        assert await self._mailbox.answer(answer)
        return is_asked


class Lent:
    """A store that the application does not close: the test does. `facets` stand in front of its own."""

    def __init__(self, store: Store, **facets: Any) -> None:
        self._store = store
        self.__dict__.update(facets)

    def __getattr__(self, name: str) -> Any:
        return _Kept(self._store.upkeep) if name == "upkeep" else getattr(self._store, name)


class _Kept:
    def __init__(self, upkeep: Any) -> None:
        self._upkeep = upkeep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._upkeep, name)

    async def aclose(self) -> None:
        """Leave the store open."""


def _failed(kind: ErrorClass, word: str) -> Failed:
    return Failed(Failure(kind, f"{word}Error", f"{word} {PAYLOAD}", f"trace of {word} {PAYLOAD}"))


_QUERIES: Final = {
    "/jobs": [
        "/jobs?q=" + quote(PAYLOAD),
        "/jobs?tab=running",
        "/jobs?q=tenant:globex",
        "/jobs?q=" + quote('error:script tag:"x y"'),
    ],
    "/dead": ["/dead?by=list", "/dead?review=resolved", "/dead?tenant=globex"],
    "/": ["/?range=7d"],
    "/tenants": [
        "/tenants?name=" + quote(PAYLOAD),
        "/tenants?only=slowed&sort=waits",
        "/tenants?name=globex&sort=name",
        "/tenants?label=" + quote("plan=" + PAYLOAD),
    ],
    "/workers": ["/workers?show=all"],
    "/schedules": [
        "/schedules?cron=" + quote("0 9 * * 1") + "&timezone=America/New_York",
        "/schedules?cron=" + quote(PAYLOAD) + "&timezone=" + quote(PAYLOAD),
        "/schedules?every=15m&between=09:30-16:00&weekdays=MON,FRI",
    ],
    "/audit": [
        "/audit?kind=queues.pause",
        "/audit?subject=" + quote(PAYLOAD),
        "/audit?tenant=globex",
        "/audit?since=" + quote(PAYLOAD),
    ],
    "/events": ["/events?kind=dead_letter", "/events?tenant=globex", "/events?kind=" + quote(PAYLOAD)],
}
