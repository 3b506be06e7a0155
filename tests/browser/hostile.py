"""A store in which every text that a page shows tries to be a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count, cycle
from typing import Any, Final, cast

import msgspec

from fairlane import Fairlane, Job, Queue
from fairlane.model.access import Role
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, Progress
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import AttemptResult, Failed, Snoozed, Succeeded, decide_settlement
from fairlane.model.schedule.records import NewSlot, SlotState
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, Renewal, RenewRequest, SettleRequest
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, TaskRecord, WorkerRecord
from fairlane.store.contract.schedules import ScheduleChange, SchedulesFindRequest, SchedulesWriteRequest
from fairlane.store.opening import register_scheme
from tests.browser.payloads import LABELS, PAYLOADS, TENANTS, TEXTS
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.callers import NO_RATE
from tests.web.journals import number_entries
from tests.web.pages.scene import Lent

QUEUE: Final = "mail"
WAITING: Final = "bulk"
"""The queue of which nothing is claimed."""

TASK: Final = "mail.send"
WORKERS: Final = tuple(text.replace("/", "") for text in LABELS)
WORKER: Final = WORKERS[0]
TENANT: Final = TENANTS[0]


class HostileStore:
    """An application on a store that somebody has filled who wants to run scripts in our pages."""

    def __init__(self, app: Fairlane, store: Store) -> None:
        """Leave the store as it is."""
        self.app = app
        self.store = store
        self._labels = cycle(LABELS)
        self._texts = cycle(TEXTS)
        self._some = cycle(PAYLOADS[start : start + 20] for start in (0, 20, 40))
        self._numbers = count()

    async def fill(self) -> None:
        """Put payloads into workers, tasks, jobs in every state, reviews, pauses, gates and access."""
        await self._register()
        for tenant in TENANTS:
            await self._enqueue(tenant, WAITING)
        for _ in LABELS:
            await self._end(await self._enqueue(), self._failure(ErrorClass.NON_RETRYABLE))
        for _ in TEXTS:
            await self._end(await self._enqueue(), Succeeded(encode_result(list(PAYLOADS))))
            await self._end(await self._enqueue(), self._failure(ErrorClass.RETRYABLE))
            await self._end(await self._enqueue(), Snoozed(3_600 * SECOND, next(self._texts)))
            await self._run(await self._enqueue())
            await (await self._enqueue()).acancel(next(self._texts))
        with self.app.acting_as(LABELS[0]):
            await self._review()
            await self._schedule()
            await self._hold()
            await self._let_in()
        await number_entries(self.app, self.store)

    async def _register(self) -> None:
        """Let workers report themselves, and a task that they can run."""
        for number, text in enumerate(LABELS):
            schema = {"title": text, "description": text, "properties": {text: {"default": text}}}
            task = TaskRecord(
                name=TASK if number == 0 else f"mail.other{number}",
                queue=QUEUE,
                schema=msgspec.json.encode({"type": "object", **schema}),
                module=text,
                sensitive=(f"secret of {number}",),
                events=(text,),
            )
            lane = LaneRecord(text, 4, (QUEUE,))
            record = WorkerRecord(
                id=WORKERS[number],
                host=text,
                pid=1,
                version=text,
                queues=(QUEUE,),
                slots=4,
                lanes=(lane,),
                labels=(text,),
                tasks=(task,),
            )
            request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
            await self.store.registry.register(request)

    async def _enqueue(self, tenant: str = TENANT, queue: str = QUEUE) -> Job[Any]:
        """Enqueue a job, the next that a worker gets of this queue."""
        text = next(self._labels)
        return await self.app.aenqueue_by_name(
            TASK,
            {text: text, **dict.fromkeys(next(self._some), text)},
            tenant=tenant,
            queue=queue,
            tags=[text],
            correlation_id=f"{text} {next(self._numbers)}",
            created_by=text,
            idempotency_key=f"{text} {next(self._numbers)}",
            dedup_key=f"{text} {next(self._numbers)}",
            metadata=dict(zip(PAYLOADS, PAYLOADS, strict=True)),
        )

    async def _run(self, job: Job[Any]) -> Claim:
        """Claim a job, and note its progress."""
        request = ClaimRequest(
            scope=Scope.all(),
            worker=WORKER,
            lease=60 * SECOND,
            queue_requests=(QueueRequest(QUEUE, 1),),
            total=1,
        )
        (claim,) = (await self.store.claims.claim(request)).claims
        assert claim.job.id == job.id
        progress = Progress(fraction=0.5, note=next(self._texts)[:200])
        renewal = Renewal(claim.job.id, claim.fence, progress)
        await self.store.claims.renew(
            RenewRequest(scope=Scope.all(), worker=WORKER, lease=60 * SECOND, renewals=(renewal,))
        )
        return claim

    async def _end(self, job: Job[Any], ending: AttemptResult) -> None:
        settlement = decide_settlement(await self._run(job), ending, draw=0.5)
        settlement = msgspec.structs.replace(settlement, log=next(self._texts))
        await self.store.claims.settle(
            SettleRequest(scope=Scope.all(), worker=WORKER, settlements=(settlement,))
        )

    def _failure(self, kind: ErrorClass) -> Failed:
        text, label = next(self._texts), next(self._labels)
        return Failed(Failure(kind, label, text, f"{text}\n{label}", label))

    async def _review(self) -> None:
        """Write notes on dead letters, and decide about some."""
        dead = self.app.dead
        first, second, third, *_ = (await dead.afind()).items
        for text in TEXTS:
            await dead.anote(first.id, text)
        await dead.aacknowledge(first.id, note=TEXTS[0])
        await dead.aresolve(second.id, note=TEXTS[0])
        await dead.areprocess(third.id, note=TEXTS[1])

    async def _schedule(self) -> None:
        """Make schedules whose notes, tags, slots and pauses have payloads."""
        for number in range(4):
            name, label, text = f"plan{number}", next(self._labels), TEXTS[number % len(TEXTS)]
            await self.app.schedules.aadd(
                name,
                TASK,
                every=3_600,
                tenant=TENANT,
                tags=[label],
                metadata={"note": text},
                arguments={LABELS[0]: label},
                note=text,
            )
            find = SchedulesFindRequest(scope=Scope.all(), names=(name,))
            reply = await self.store.schedules.find(find)
            states: tuple[SlotState, ...] = ("pending", "skipped", "missed", "failed")
            slots = tuple(
                NewSlot(at=reply.now - at * SECOND, tenant=TENANT, state=state, because=next(self._texts))
                for at, state in enumerate(states, 1)
            )
            record = msgspec.structs.replace(reply.rows[0].record, problem=text if number == 1 else "")
            change = ScheduleChange(name=name, revision=reply.rows[0].revision, record=record, slots=slots)
            await self.store.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=(change,)))
        await self.app.schedules.apause("plan2", reason=TEXTS[0])

    async def _hold(self) -> None:
        """Pause and close things, and set limits, with reasons."""
        app = self.app
        for holds, name in ((app.tenants, TENANT), (app.queues, QUEUE), (app.tasks, TASK)):
            await holds.apause(name, reason=TEXTS[0])
            await holds.aclose(name, reason=TEXTS[1])
        await app.queues.aset(QUEUE, max_waiting=1_000, note=TEXTS[0])
        await app.gates.aset("smtp", limit=3, note=TEXTS[0])

    async def _let_in(self) -> None:
        """Add users and tokens."""
        for number, tenant in enumerate(TENANTS[:3]):
            await self.app.users.aadd(
                f"user{number}", password="correct horse", role=Role.VIEWER, tenant=tenant
            )
            await self.app.tokens.acreate(tenant, role=Role.VIEWER, tenant=tenant)


@asynccontextmanager
async def hostile_store() -> AsyncIterator[HostileStore]:
    """Open an empty store and fill it."""
    async with STORES["sqlite"](DrivenClock()) as store:
        register_scheme("hostile", lambda *_: cast("Store", Lent(store)))
        app = Fairlane("hostile://here", config=NO_RATE, queues=[Queue(QUEUE), Queue(WAITING)])
        hostile = HostileStore(app, store)
        try:
            await hostile.fill()
            yield hostile
        finally:
            await app.aclose()
