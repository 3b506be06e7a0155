"""What applications and operators do in a run, drawn operation by operation. Real client code does it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.instants import SECOND, to_datetime
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind
from fairlane.model.retry.revoke import RevokeHow
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import RevokeRequest
from fairlane.store.contract.jobs import EditRequest, ExplainRequest, StopRequest
from fairlane.store.contract.policies import HoldRequest, OverrideRequest, SubjectRequest
from tests.simulation.process import Process, Wanted
from tests.simulation.work import GATE, GUARDED, NOVEL, QUEUES, TENANTS, Plan

ENDINGS: Final = (
    *("ok",) * 8,
    *("fail", "fail", "retry", "snooze", "fatal", "give up", "exit", "hang", "stubborn"),
)
TASKS: Final = ("send", "send", "sync", "once", "poll", "shoot", "crawl", NOVEL)
HELD: Final = (
    *(Subject(SubjectKind.QUEUE, name) for name in ("mail", "bulk")),
    *(Subject(SubjectKind.TENANT, name) for name in TENANTS[:2]),
    Subject(SubjectKind.TASK, "crawl"),
)

Job = tuple[UUID, str]
"""A job's id and tenant."""


class Client:
    """One caller: it enqueues, looks and steers until its operations are used up."""

    def __init__(
        self,
        process: Process,
        rng: Random,
        jobs: list[Job],
        note: Callable[[str, Any], None],
        *,
        is_guarded: bool = False,
    ) -> None:
        """Share what is known of jobs with the other callers."""
        self._tasks = (*TASKS, *GUARDED) if is_guarded else TASKS
        self._process = process
        self._rng = rng
        self._jobs = jobs
        self._note = note
        self._number = 0
        self.is_told_to_end = False
        self.wrong: list[str] = []

    async def live(self, operations: int, pace: float, verbs: tuple[str, ...]) -> None:
        """Do so many operations, some time apart."""
        for _ in range(operations):
            await asyncio.sleep(self._rng.random() ** 3 * pace)
            if self.is_told_to_end:
                return
            verb = self._rng.choice(verbs)
            act: Callable[[], Awaitable[object]] = getattr(self, verb)
            try:
                answer = await act()
            except FairlaneError as error:
                answer = type(error).__name__
            except ValueError as error:
                answer = str(error)[:60]
            self._note(verb, answer)

    # ── putting in ────────────────────────────────────────────────────────────

    def _plan(self, *, is_quick: bool = False) -> Plan:
        rng = self._rng
        if is_quick:
            return [["chain" if rng.random() < 0.3 else "ok", rng.randrange(1, 80)]]
        steps = [[rng.choice(ENDINGS), rng.choice((1, 20, 300, 2_500))] for _ in range(rng.randrange(3))]
        return [*steps, ["ok", rng.choice((1, 20, 300))]]

    def _options(self, task: str) -> dict[str, Any]:
        rng = self._rng
        options: dict[str, Any] = {"max_attempts": rng.choice((1, 3, 6, 6))}
        if rng.random() < 0.2:
            options["priority"] = rng.choice((-50, 1, 100))
        if rng.random() < 0.2:
            options["delay"] = rng.choice((0.2, 1, 4))
        if rng.random() < 0.1 and task != "turn":
            options["expires_in"] = rng.choice((0.5, 3, 20))
        return options

    def _known(self, jobs: list[Any]) -> str:
        self._jobs += [(job.id, job.tenant) for job in jobs]
        return " ".join(str(job.id)[-4:] for job in jobs)

    def _drawn(self) -> Wanted:
        task = self._rng.choice(self._tasks)
        self._number += 1
        return task, self._rng.choice(TENANTS), self._number, self._plan(), self._options(task)

    async def enqueue(self) -> str:
        """Enqueue one job."""
        return self._known([await self._process.enqueue(*self._drawn())])

    async def enqueue_many(self) -> str:
        """Enqueue some jobs together."""
        wanted = [self._drawn() for _ in range(self._rng.randrange(2, 5))]
        return self._known(await self._process.enqueue_many(wanted))

    async def enqueue_by_key(self) -> str:
        """Enqueue under one of few idempotency keys, or one of few de-duplication keys, of few tenants."""
        rng = self._rng
        task, tenant = rng.choice(("send", "poll")), rng.choice(TENANTS[:2])
        kind = rng.choice(("idempotency_key", "dedup_key"))
        options = {kind: rng.choice(("k1", "k2"))}
        times = rng.choice((1, 2))  # a form may be sent twice
        sent = [
            self._process.enqueue(task, tenant, rng.choice((1, 1, 1, 2)), [["ok", 200]], options)
            for _ in range(times)
        ]
        answers = await asyncio.gather(*sent, return_exceptions=True)
        made = [one for one in answers if not isinstance(one, BaseException)]
        for error in (one for one in answers if isinstance(one, BaseException)):
            if not made:
                raise error
        return self._known(made)

    async def flood(self) -> str:
        """Give a tenant much to do in the queue whose turns are watched."""
        tenant = self._rng.choice(TENANTS)
        number = self._rng.choice((1, 1, 4, 10))
        wanted: list[Wanted] = [("turn", tenant, n, self._plan(is_quick=True), {}) for n in range(number)]
        return self._known(await self._process.enqueue_many(wanted))

    async def use(self) -> str:
        """Enqueue some jobs that call the provider, or that spend."""
        rng = self._rng
        tenants = rng.choice((TENANTS[:1], TENANTS[:2], TENANTS))
        wanted: list[Wanted] = []
        for _ in range(rng.choice((2, 4, 7))):
            self._number += 1
            plan = [["ok", rng.choice((1, 50, 400))]] if rng.random() < 0.8 else self._plan()
            wanted.append((rng.choice(GUARDED), rng.choice(tenants), self._number, plan, {}))
        return self._known(await self._process.enqueue_many(wanted))

    # ── looking ───────────────────────────────────────────────────────────────

    def _pick(self) -> tuple[UUID, str]:
        """Choose a job and a tenant to ask for it: its own, more often than not."""
        if not self._jobs:
            return UUID(int=0), TENANTS[0]
        id, tenant = self._rng.choice(self._jobs[-12:])
        return id, tenant if self._rng.random() < 0.6 else self._rng.choice(TENANTS)

    def _is_mine(self, id: UUID, tenant: str) -> bool:
        return (id, tenant) in self._jobs

    async def get(self) -> str:
        """Look at a job as one tenant."""
        id, tenant = self._pick()
        with self._process.app.tenant(tenant):
            job = await self._process.app.jobs.aget(id)
        if job.tenant != tenant:
            self.wrong.append(f"{tenant} was shown job {id} of {job.tenant}")
        return job.state.value

    async def find(self) -> str:
        """Look at all jobs as one tenant."""
        tenant = self._rng.choice(TENANTS)
        with self._process.app.tenant(tenant):
            page = await self._process.app.jobs.afind(limit=50)
            counts = await self._process.app.jobs.acount()
        foreign = [job for job in page if job.tenant != tenant]
        if foreign:
            self.wrong.append(f"{tenant} has found {len(foreign)} jobs of others")
        return f"{len(page.items)} of {sum(counts.values())}"

    async def look(self) -> object:
        """Ask why a job waits, and what comes next."""
        id, _ = self._pick()
        app = self._process.app
        await app.jobs.apeek(self._rng.choice(QUEUES), 3)
        return await app.client.store.jobs.explain(ExplainRequest(scope=Scope.all(), id=id))

    # ── steering jobs ─────────────────────────────────────────────────────────

    async def cancel(self) -> str:
        """Cancel a job as one tenant."""
        id, tenant = self._pick()
        with self._process.app.tenant(tenant):
            replies = await self._process.app.jobs.acancel(id, reason="enough")
        if replies and not self._is_mine(id, tenant):
            self.wrong.append(f"{tenant} has cancelled job {id}, which is not its own")
        return " ".join(reply.value for reply in replies.values())

    async def run_now(self) -> int:
        """Make a job due."""
        id, tenant = self._pick()
        with self._process.app.tenant(tenant):
            return await self._process.app.jobs.arun_now(id)

    async def edit(self) -> str:
        """Change a waiting job."""
        id, tenant = self._pick()
        change = self._rng.choice(({"priority": 7}, {"tags": ("x",)}, {"expires_at": None}))
        request = EditRequest(scope=Scope(tenant), id=id)
        request = msgspec.structs.replace(request, **change)
        return (await self._process.app.client.store.jobs.edit(request)).answer

    async def condemn(self) -> int:
        """Send a waiting job to the dead letters."""
        id, tenant = self._pick()
        request = StopRequest(scope=Scope(tenant), ids=(id,), reason="no")
        return len(await self._process.app.client.store.jobs.condemn(request))

    async def revoke(self) -> str:
        """Take a running job from its worker, or let it fail."""
        id, tenant = self._pick()
        how: RevokeHow = self._rng.choice(("retry", "dead", "return"))
        request = RevokeRequest(scope=Scope(tenant), ids=(id,), how=how, delay=SECOND, reason="no")
        reply = await self._process.app.client.store.claims.revoke(request)
        return " ".join(f"{how}: {one.answer}" for one in reply.jobs)

    async def again(self) -> str:
        """Enqueue a copy of a finished job."""
        id, tenant = self._pick()
        with self._process.app.tenant(tenant):
            return self._known([await self._process.again(id)])

    # ── reviewing dead letters ────────────────────────────────────────────────

    async def _letter(self) -> tuple[UUID, str]:
        """Choose a dead letter and a tenant to ask for it: its own, more often than not.

        If there is none yet, a waiting job is condemned first.
        """
        letters = (await self._process.app.dead.afind(limit=20)).items
        if not letters:
            id, tenant = next(iter(reversed(self._jobs)), (UUID(int=0), TENANTS[0]))
            request = StopRequest(scope=Scope(tenant), ids=(id,), reason="no")
            await self._process.app.client.store.jobs.condemn(request)
            return id, tenant
        job = self._rng.choice(letters).job
        return job.id, job.tenant if self._rng.random() < 0.7 else self._rng.choice(TENANTS)

    async def review(self) -> str:
        """Decide about a dead letter, and perhaps run it all the same."""
        id, tenant = await self._letter()
        verb = self._rng.choice(("aacknowledge", "aresolve", "aignore", "adiscard", "adiscard"))
        with self._process.app.tenant(tenant):
            letter = await getattr(self._process.app.dead, verb)(id, note="seen")
            if self._rng.random() < 0.6:
                return self._known([await self._process.reprocess(id)])
        return f"{verb[1:]}: {letter.review}"

    async def reprocess(self) -> str:
        """Run a dead job again, sometimes twice at once or one after the other: two people may look at it."""
        id, tenant = await self._letter()
        made: list[Any] = []
        with self._process.app.tenant(tenant):
            for _ in range(self._rng.choice((1, 2))):
                asked = [self._process.reprocess(id) for _ in range(self._rng.choice((1, 2)))]
                answers = await asyncio.gather(*asked, return_exceptions=True)
                made += [one for one in answers if not isinstance(one, BaseException)]
        for error in (one for one in answers if isinstance(one, BaseException)):
            if not made:
                raise error
        if len({job.id for job in made}) > 1:
            self.wrong.append(f"those who ran dead letter {id} again got several jobs")
        return self._known(made)

    # ── steering all ──────────────────────────────────────────────────────────

    async def purge(self) -> int:
        """Cancel all that waits of a tenant in a queue."""
        return await self._process.app.tenants.apurge(
            self._rng.choice(TENANTS), queue="mail", reason="spring"
        )

    async def hold(self) -> str:
        """Pause, resume, close or open something."""
        rng, policies = self._rng, self._process.app.client.store.policies
        subject = rng.choice(HELD)
        now = self._process.app.client.clock.wall()
        until = rng.choice((None, now + SECOND, now + 5 * SECOND))
        held = HoldRequest(scope=Scope.all(), subject=subject, who="ops", reason="drill", until=until)
        plain = SubjectRequest(scope=Scope.all(), subject=subject, who="ops")
        verb = rng.choice(("pause", "pause", "resume", "close", "reopen", "reopen"))
        await getattr(policies, verb)(held if verb in {"pause", "close"} else plain)
        return f"{verb} {subject}"

    async def limit(self) -> str:
        """Set limits of a tenant, by the public face."""
        rng = self._rng
        tenant = rng.choice(TENANTS)
        limits = Limits(running=rng.choice((0, 1, 2)), rate=rng.choice((None, Rate(5, "second", burst=2))))
        await self._process.app.tenants.aset(tenant, queue=rng.choice(("mail", "bulk")), limits=limits)
        return tenant

    async def override(self) -> str:
        """Lay a change over a queue, a gate or a tenant, perhaps for a while."""
        rng = self._rng
        subject, change = rng.choice(
            (
                (Subject(SubjectKind.QUEUE, "mail"), PolicyChange(rate=Rate(20, "second", burst=3))),
                (Subject(SubjectKind.QUEUE, "bulk"), PolicyChange(limits=Limits(running=1))),
                (Subject(SubjectKind.QUEUE, "bulk"), PolicyChange(max_waiting=8)),
                (Subject(SubjectKind.GATE, GATE.name), PolicyChange(limit=1)),
                (Subject(SubjectKind.GATE, GATE.name), PolicyChange(limit=3)),
                (Subject(SubjectKind.TENANT, "acme"), PolicyChange(weight=2.0)),
                (Subject(SubjectKind.TASK, "crawl"), PolicyChange(rate=Rate(2, "second"))),
            )
        )
        end = rng.choice((None, self._process.app.client.clock.wall() + 4 * SECOND))
        request = OverrideRequest(scope=Scope.all(), subject=subject, change=change, who="ops", until=end)
        await self._process.app.client.store.policies.override(request)
        return f"{subject} {change.fields()} until {end and to_datetime(end)}"

    async def reset(self) -> str:
        """Take an override off."""
        subject = self._rng.choice((*HELD[:2], Subject(SubjectKind.GATE, GATE.name)))
        request = SubjectRequest(scope=Scope.all(), subject=subject, who="ops")
        await self._process.app.client.store.policies.reset(request)
        return str(subject)

    async def operate(self) -> str:
        """Open, close or reset a breaker, for a moment or until somebody ends it."""
        rng, breakers = self._rng, self._process.app.breakers
        name, tenant = rng.choice(("calls", "texts")), rng.choice((None, None, *TENANTS[:2]))
        verb, until = rng.choice(("open", "open", "close", "reset", "reset")), None
        if rng.random() < 0.7:
            until = to_datetime(self._process.app.client.clock.wall() + rng.choice((1, 3)) * SECOND)
        if verb == "reset":
            await breakers.areset(name, tenant=tenant)
        else:
            act = breakers.aopen if verb == "open" else breakers.aclose
            await act(name, reason="drill", tenant=tenant, until=until)
        return f"{verb} {name} {tenant} until {until}"

    async def ceiling(self) -> str:
        """Change what a budget may spend, or change it back."""
        rng, budgets = self._rng, self._process.app.budgets
        name, ceiling = rng.choice(("ai", "shop")), rng.choice((None, "0.5", "1.5", "4"))
        if ceiling is None:
            await budgets.areset(name)
        else:
            await budgets.aset(name, ceiling=ceiling)
        return f"{name} {ceiling}"


CALLS: Final = (
    *("enqueue", "enqueue_many", "enqueue_by_key", "enqueue_by_key"),
    *("flood", "flood", "get", "cancel"),
)
EVERYTHING: Final = (
    *CALLS,
    *(
        "find",
        "look",
        "run_now",
        "edit",
        "condemn",
        "revoke",
        "revoke",
        "again",
        "review",
        "reprocess",
        "reprocess",
        "purge",
        "hold",
        "limit",
        "override",
        "override",
        "reset",
    ),
)
USES: Final = ("use",) * 4
GUARDS: Final = (*USES, "use", "use", "operate", "ceiling")
"""What else is done where there are guards."""
