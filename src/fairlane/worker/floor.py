"""Where attempts begin and end: claims become attempts, endings become settlements. Loops nowhere.

Whatever is raised on the way from a claim to its settlement settles that attempt as failed, and concerns no
other; if even that cannot be done, the worker ends. A slot is never left behind.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from fairlane.app.client import Client
from fairlane.app.declaration import Declaration, in_force
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.errors import StoreError
from fairlane.model.failure import ErrorClass, describe
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.judge import Ending, Failed, HandedBack, Unknown, judge
from fairlane.model.lifecycle import State
from fairlane.model.payload import Undecodable
from fairlane.model.retry import RetryPolicy
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import Bell
from fairlane.store.contract.claims import SettleReply
from fairlane.worker import report
from fairlane.worker.arguments import read_arguments
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.endings import ending_of, undecodable
from fairlane.worker.holdings import Holdings
from fairlane.worker.lane import Desk, Done
from fairlane.worker.renew import may_be_lost
from fairlane.worker.run import Runner
from fairlane.worker.store_time import StoreTime
from fairlane.worker.unknown import STRANGER, Sighting, Strangers, is_unknown
from fairlane.worker.watch import LAST_PATIENCE, Watch

LAST_WORD: Final[Micros] = SECOND
"""How long a worker that must be gone still tries to settle what it stopped."""


class Floor:
    """What the parts of a worker share. Everything here happens in the worker's loop, except `receive`.

    While `is_closing` nothing is claimed or begun; `gone` is set when the lanes have ended, or have to, be it
    because the worker's own code is `broken`.
    """

    def __init__(
        self, worker: str, client: Client, settings: WorkerSettings, clock: Clock, desks: list[Desk]
    ) -> None:
        self.id = worker
        self.lease = settings.lease
        self.holdings = Holdings()
        self.desks = desks
        self.thirst = Bell()
        self.settled_count = 0
        self.failed_count = 0
        self.is_closing = False
        self.is_burst = False
        self.gone = asyncio.Event()
        self.broken: BaseException | None = None
        self._leave_at: Micros | None = None
        self._open = set(desks)
        self.times = StoreTime(0, 0)
        self.runner = Runner(worker, client, clock, self._over)
        self.watch = Watch(self.holdings, clock, self._over, self.runner.abandon)
        self._client = client
        self._settings = settings
        self._clock = clock
        self._tasks: dict[str, Declaration] = {}
        self._strangers = Strangers(lambda: client.store, clock)

    # ── claims come ───────────────────────────────────────────────────────────

    def receive(self, claims: tuple[Claim, ...], desk: Desk, asked_at: Micros) -> list[Attempt]:
        """Hold claims from the moment they are here. For the renewing thread: the loop may be blocked."""
        attempts: list[Attempt] = []
        for claim in claims:
            attempt = Attempt(claim, STRANGER, desk, asked_at)
            try:
                attempt.declared = self._declared(claim.job.task) or STRANGER
            except BaseException as error:  # noqa: BLE001 (one broken task is no other's matter)
                attempt.trouble = error
            self.holdings.arrive(attempt)
            attempts.append(attempt)
        return attempts

    async def begin(self, attempts: list[Attempt], asked_at: Micros) -> None:
        """Start what has arrived; give back what was lost or stopped on the way, or is not known here."""
        if attempts and not self.holdings:
            self.watch.bell.ring()
        unknown: list[Attempt] = []
        now = self._clock.elapsed()
        for attempt in attempts:
            try:
                is_known = self._begin_one(attempt, now)
            except BaseException as error:  # noqa: BLE001 (ends this attempt and no other)
                self._fail(attempt, error)
                continue
            if not is_known:
                attempt.is_over = True
                unknown.append(attempt)
        if unknown:
            await self._hand_back(unknown, asked_at)

    def _begin_one(self, attempt: Attempt, now: Micros) -> bool:
        """Start an attempt or give it back; False, and nothing is done, if it is not known here."""
        older = self.holdings.take(attempt)
        if older is not None:
            self.watch.stop(older, Cause.STALE)
        if attempt.trouble is not None:
            raise attempt.trouble
        if self.is_closing or attempt.cause is not None or may_be_lost(attempt, now, self.lease):
            self._finish(attempt, HandedBack())
        elif is_unknown(attempt.claim.job, attempt.declared):
            return False
        else:
            self._start(attempt)
        return True

    def _declared(self, task: str) -> Declaration | None:
        """Give what holds for a task here, the configuration laid over its decorator; None if unknown."""
        found = self._tasks.get(task)
        if found is None:
            said = self._client.registry.find(task)
            if said is not None:
                found = self._tasks[task] = in_force(said, self._client.settings.tasks)
        return found

    def _start(self, attempt: Attempt) -> None:
        try:
            arguments = read_arguments(attempt.claim.job, attempt.declared)
        except Undecodable as error:
            self._finish(attempt, undecodable(error))
        else:
            self.runner.start(attempt, arguments)

    async def _hand_back(self, attempts: list[Attempt], asked_at: Micros) -> None:
        jobs = [attempt.claim.job for attempt in attempts]
        try:
            asking = self._strangers.sightings(jobs, self.times.store(asked_at))
            sightings = await self._client.portal.aside(asking)
        except StoreError:
            sightings = [Sighting()] * len(jobs)
        except Exception as error:  # noqa: BLE001 (settles these attempts, and the lane goes on)
            for attempt in attempts:
                self._fail(attempt, error)
            return
        for attempt, seen in zip(attempts, sightings, strict=True):
            newest = None if attempt.declared is STRANGER else attempt.declared.version
            report.unknown(attempt, newest, is_news=self._strangers.is_news(attempt.claim.job))
            self._finish(attempt, Unknown(seen.unseen_for, newest, seen.is_live))

    # ── attempts end ──────────────────────────────────────────────────────────

    def _over(self, attempt: Attempt, result: Any, error: BaseException | None) -> None:
        if attempt.is_over:
            return  # given up before: what it did since changes nothing
        try:
            ending = ending_of(attempt, result, error, self._store_now)
            if ending is None:
                attempt.is_over = True
                self._release(attempt)
                attempt.desk.bell.ring()
            else:
                self._finish(attempt, ending)
        except BaseException as broken:  # noqa: BLE001 (called from the loop and from tasks, which drop it)
            self._fail(attempt, broken)

    def _store_now(self) -> Instant:
        return self.times.store(self._clock.elapsed())

    def _fail(self, attempt: Attempt, error: BaseException) -> None:
        """Settle as failed an attempt around which something was raised that is no handler's ending.

        As its policies say or, where it was these that raised, with nothing but the claim. If that is raised
        upon, too, the worker must end.
        """
        try:
            report.broken(attempt, error)
            ending = Failed(describe(error, ErrorClass.RETRYABLE))
            try:
                self._finish(attempt, ending)
            except BaseException:  # noqa: BLE001 (a policy or the log: it goes without)
                settlement = judge(attempt.claim, ending, draw=random.random())  # noqa: S311 (as below)
                attempt.desk.done.append(Done(attempt, settlement))
                attempt.desk.bell.ring()
        except BaseException as worse:  # noqa: BLE001 (nothing is left but to end)
            self.give_up(worse)

    def give_up(self, error: BaseException) -> None:
        """End the worker: its own code cannot go on. Called in the worker's loop."""
        self.broken = self.broken or error
        self.gone.set()

    def _finish(self, attempt: Attempt, ending: Ending) -> None:
        attempt.is_over = True
        job, declared = attempt.claim.job, attempt.declared
        policies: tuple[RetryPolicy | None, ...] = ()
        if isinstance(ending, Failed):
            policies = (declared.retry, self._client.settings.queue(job.queue).retry)
            if ending.classifier_error is not None:
                report.classifier_failed(attempt, ending.classifier_error)
        tail = attempt.rein.tail
        settlement = judge(
            attempt.claim,
            ending,
            *policies,
            draw=random.random(),  # noqa: S311 (spreads retries, guards nothing)
            max_crashes=self._settings.max_crashes,
            log=None if tail is None else tail.text(),
        )
        attempt.desk.done.append(Done(attempt, settlement))
        attempt.desk.bell.ring()

    def newest(self, batch: list[Done]) -> list[Done]:
        """Leave out attempts whose job has been claimed here again and is over, too: their claims are lost.

        So it is if a job was lost, or settled without an answer, and came back. The store's answer names jobs
        and no fences: of two settlements of one job nobody could say which was taken.
        """
        if len({done.settlement.id.int for done in batch}) == len(batch):  # numbers: see `Holdings`
            return batch
        by_fence = sorted(batch, key=lambda done: done.settlement.fence)
        last = {done.settlement.id.int: done for done in by_fence}
        for done in batch:
            if last[done.settlement.id.int] is not done:
                report.stale(done)
                self._release(done.attempt)
        return list(last.values())

    def settled(self, batch: list[Done], reply: SettleReply) -> None:
        """Hear what became of settlements, and have the slots back."""
        states = {one.id.int: one.state for one in reply.settled}  # numbers: see `Holdings`
        for done in batch:
            try:
                self._hear(done, states.get(done.settlement.id.int), reply)
            except Exception as error:  # noqa: BLE001 (it is settled: its slot is free, whoever hears of it)
                report.broken(done.attempt, error)
            self._release(done.attempt)
        if self.is_burst:
            self.wake()  # what has ended may have made something claimable, in any lane
        most = self._settings.max_jobs
        if most is not None and self.settled_count >= most and not self.is_closing:
            report.had_enough(self.id, self.settled_count)
            self.close(self._clock.elapsed() + self._settings.shutdown_deadline)

    def _hear(self, done: Done, state: State | None, reply: SettleReply) -> None:
        if state is not None:
            self.settled_count += done.settlement.outcome != "returned"
            self.failed_count += done.settlement.outcome == "failed"
            report.settled(done, state)
        elif not done.attempt.rein.has_succeeded:
            report.stale(done)
        elif done.settlement.id in reply.stale:
            self.settled_count += 1
            report.succeeded_by_itself(done)
        else:
            report.left_open(done)

    def _release(self, attempt: Attempt) -> None:
        self.holdings.drop(attempt)
        attempt.desk.release(attempt)

    # ── the lanes, and the end ────────────────────────────────────────────────

    def wake(self) -> None:
        """Let every lane look for work."""
        for desk in self.desks:
            desk.wake()

    def is_dry(self) -> bool:
        """Whether a lane has room and found nothing to fill it with."""
        return any(desk.free and not desk.is_hungry for desk in self.desks)

    def lose(self, attempt: Attempt, cause: Cause) -> None:
        """Stop a handler for what the renewing thread has heard."""
        try:
            if cause is Cause.STALE:
                self.holdings.stray(attempt)
            self.watch.stop(attempt, cause)
        except BaseException as error:  # noqa: BLE001 (a callback: its loop would only log it)
            self.give_up(error)

    def close(self, deadline: Micros, *, in_haste: bool = False) -> None:
        """Claim nothing more; stop at the deadline what still runs, and soon after it be gone."""
        self.is_closing = True
        self._leave_at = deadline + (LAST_WORD if in_haste else LAST_PATIENCE + LAST_WORD)
        self.watch.end_by(deadline, in_haste=in_haste)
        self.wake()

    def is_done(self, desk: Desk) -> bool:
        """Whether a lane is to end: nothing is held in it, and nothing may come."""
        if self.is_burst and not self.is_closing and self._is_quiet():
            # Lanes end a burst together: the last job of one may have made work for another.
            self.is_closing = True
            self.wake()
        if self.is_closing and not desk.asking and (desk.free == desk.lane.slots or self._is_left(desk)):
            self._open.discard(desk)
            if not self._open:
                self.gone.set()
            return True
        return False

    def _is_left(self, desk: Desk) -> bool:
        """Whether nothing of a lane runs or waits to be settled, although a slot is taken: by nobody."""
        if desk.done or any(attempt.desk is desk for attempt in self.holdings.running()):
            return False
        report.slots_left(self.id, desk.lane.name, desk.lane.slots - desk.free)
        return True

    def _is_quiet(self) -> bool:
        return not self.holdings and not any(
            desk.is_hungry or desk.asking or desk.done for desk in self.desks
        )

    async def keep_time(self) -> Micros:
        """Watch the handlers, and the door."""
        pause = self.watch.look()
        if self._leave_at is not None and self._clock.elapsed() >= self._leave_at:
            self.gone.set()
        return pause
