"""One seed: draw a world, let it live through its faults, heal it, and judge it."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any, Final

from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.duties import Duties
from fairlane.duties.duties import log as duties_log
from fairlane.lab import history
from fairlane.lab.ledger import Found, Reading, Record
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.outage import GAP_MARGIN
from fairlane.model.lifecycle.states import Home, home, is_finished
from fairlane.model.policy.declared import Lane
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.runtime.outage import LONGEST_PAUSE, StoreOutage
from fairlane.store.contract.policies import SubjectRequest
from fairlane.worker.worker import WorkerRuntime
from tests.invariants import violations
from tests.oracle.books import order_of
from tests.simulation.clients import CALLS, EVERYTHING, GUARDS, USES, Client, Job
from tests.simulation.faults import Faults, draw_weather
from tests.simulation.guards import heal, judge
from tests.simulation.loop import Schedule, SimLoop
from tests.simulation.process import Process
from tests.simulation.provider import Provider, draw_guards, go_up_and_down
from tests.simulation.server import Server, StoreClock
from tests.simulation.watch import Order, Strand, Watch
from tests.simulation.work import GATE, TASKS, TENANTS, make_app

CHAOS: Final[Micros] = 12 * SECOND
PATIENCE: Final[Micros] = 240 * SECOND
"""How long a healed world may take until nothing is left to do."""

MISHAPS: Final = ("kill", "stop", "freeze", "block", "outage", "jump", "nap")


class World:
    """Everything of one run."""

    def __init__(self, seed: int, operations: int, *, keeps_calls: bool, traced: int) -> None:
        """Draw what the run will be like."""
        self.rng = rng = Random(seed)
        self.schedule = Schedule(rng, is_shuffled=rng.random() < 0.25)
        self.schedule.on_error = self._unheard
        self.trace: deque[tuple[Micros, str, str, Any]] = deque(maxlen=traced)
        self.faults = Faults(rng, draw_weather(rng))
        self._guards_rng, self.guards = draw_guards(seed)
        self.provider = Provider()
        clock = StoreClock(self.schedule)
        if self.guards is not None:
            clock.advance(-self._guards_rng.choice((0.5, 4, 8)))
        self.watch = Watch(lambda: self.schedule.now, clock.now)
        self.server = Server(self.schedule, clock, self.faults, self.watch)
        self.server.concurrent_calls = 1 + seed % 2
        self.server.tell = self.tell
        self.server.calls = [] if keeps_calls else None
        self.watch.ready = self._ready
        self.watch.is_well = self._is_well
        self.watch.head = self._head
        self.processes: list[Process] = []
        self.wrong: list[str] = []
        self.figures = {"workers": 0, "kills": 0, "freezes": 0, "outages": 0, "jumps": 0}
        self._operations = operations
        self._jobs: list[Job] = []
        self._clients: list[Client] = []
        self._workers: list[tuple[Process, WorkerRuntime]] = []
        self._old: set[Process] = set()
        self._mishaps = [kind for kind in MISHAPS if rng.random() < 0.5]
        self._is_healed = False
        self._in_seconds = rng.random() < 0.3
        lease = rng.choice((1_500_000, 2 * SECOND, 4 * SECOND, 4 * SECOND, 12 * SECOND))
        self._settings = WorkerSettings(
            lease=lease, renew_every=lease // 3, shutdown_deadline=rng.choice((SECOND // 2, 3 * SECOND))
        )
        self._lanes = _draw_lanes(rng)

    def tell(self, who: str, what: str, about: object) -> None:
        """Remember what happened, for the trace of a failure."""
        self.trace.append((self.schedule.now, who, what, about))

    def _unheard(self, loop: SimLoop, context: dict[str, Any]) -> None:
        if self.server.is_over:
            return
        error = context.get("exception")
        if not isinstance(error, StoreError):  # what a caller gave up waiting for may fail unheard
            self.wrong.append(f"{loop.name}: {context.get('message')}: {error!r}")

    def _ready(self, queue: str) -> dict[str, int]:
        """Count the ready jobs of each tenant where turns are watched."""
        if queue != "fair":
            return {}
        counts: dict[str, int] = {}
        for (name, tenant, _), ids in self.server.books.ready.items():
            if name == queue:
                counts[tenant] = counts.get(tenant, 0) + len(ids)
        return counts

    def _head(self, strand: Strand) -> Order | None:
        """Say where the first ready job of a strand stands."""
        ids = self.server.books.ready.get(strand)
        return min((order_of(self.server.books.jobs[id]) for id in ids), default=None) if ids else None

    def _is_well(self, worker: str) -> bool:
        """Whether nothing but outages of the store can have kept a worker from renewing in time.

        With leases that outlast every outage after which reclaiming does not rest.
        """
        settings = self._settings
        is_long = settings.lease - settings.renew_every > settings.renew_every + GAP_MARGIN + SECOND
        is_calm = is_long and not self.faults.is_rough and not self.figures["jumps"]
        return is_calm and any(one.name == worker and one.is_well for one, _ in self._workers)

    # ── processes ─────────────────────────────────────────────────────────────

    def _process(self, name: str, *, is_old: bool = False) -> Process:
        app = make_app(is_old=is_old, is_counted_in_seconds=self._in_seconds, guards=self.guards)
        made = Process(self.schedule, self.rng, name, app)
        made.provider = self.provider
        made.ledger, made.started = self.watch.records, self.watch.started
        self.processes.append(made)
        return made

    def start_worker(self) -> None:
        """Start a worker, as a supervisor does, in a process of its own."""
        self.figures["workers"] += 1
        is_old = not self._is_healed and self.rng.random() < 0.2
        process = self._process(f"worker-{self.figures['workers']}", is_old=is_old)
        if is_old:
            self._old.add(process)
        worker = WorkerRuntime(
            process.app,
            lanes=self._lanes,
            settings=self._settings,
            clock=process.app.client.clock,
            duties=self._is_healed or self.rng.random() < 0.8,
        )
        worker.on_loop_blocked = lambda: self._exit(process, worker)
        self._workers.append((process, worker))
        self.tell(process.name, "starts", "")
        process.run(self._supervise(process, worker))

    def _start_scheduler(self) -> None:
        """Start a process that does the duties alone."""
        process = self._process("scheduler")
        client, settings = process.app.client, process.app.settings
        outage = StoreOutage(duties_log, process.name, lambda: None)
        duties = Duties(process.name, lambda: client.store, client.clock, settings, self._settings, outage)
        process.run(duties.run())

    async def _supervise(self, process: Process, worker: WorkerRuntime) -> None:
        """Run a worker to its end; one that ends is replaced."""
        try:
            await worker.run()
            self.tell(process.name, "has left", worker.settled)
        except StoreError as error:
            self.tell(process.name, "could not start", error)
        except Exception as error:  # noqa: BLE001 (whatever it is, no worker may end by it)
            if not self.server.is_over:
                self.wrong.append(f"{process.name} ended by {error!r}")
        if not self.server.is_over:
            process.is_alive = False
            self._replace(process)

    def _exit(self, process: Process, worker: WorkerRuntime) -> None:
        """End a process whose loop is blocked, as exit code 70 does; called inside of it."""
        self.tell(process.name, "stood still", "")
        self.server.loop.call_soon(self._kill, process)

    def _kill(self, process: Process) -> None:
        if process.is_alive:
            self.figures["kills"] += 1
            self.tell(process.name, "is killed", "")
            process.kill()
            self._replace(process)

    def _replace(self, process: Process) -> None:
        self._workers = [one for one in self._workers if one[0] is not process]
        self.server.loop.call_later(self.rng.choice((0.1, 1.0, 3.0)), self.start_worker)

    # ── mishaps ───────────────────────────────────────────────────────────────

    async def _mishap(self) -> None:
        """Let things go wrong, one after the other, until the world is healed."""
        while not self._is_healed and self._mishaps:
            await asyncio.sleep(self.rng.random() * 3)
            if not self._is_healed:
                getattr(self, self.rng.choice(self._mishaps))()

    def _one(self) -> tuple[Process, WorkerRuntime] | None:
        return self.rng.choice(self._workers) if self._workers else None

    def kill(self) -> None:
        """Kill a worker."""
        if (one := self._one()) is not None:
            self._kill(one[0])

    def stop(self) -> None:
        """Stop a worker gracefully, or at once if it was told before."""
        if (one := self._one()) is not None:
            self.tell(one[0].name, "is told to stop", "")
            one[0].is_well = False
            one[0].main.call_soon(one[1].stop)

    def freeze(self) -> None:
        """Freeze a worker, often past its leases, and let it come back."""
        self._stand_still(only_main=False, most=8)

    def block(self) -> None:
        """Let a handler block its worker's loop; the portal's goes on."""
        self._stand_still(only_main=True, most=20)

    def nap(self) -> None:
        """Freeze a worker for a moment."""
        self._stand_still(only_main=self.rng.random() < 0.5, most=0.2)

    def _stand_still(self, *, only_main: bool, most: float) -> None:
        if (one := self._one()) is not None:
            process, duration = one[0], self.rng.random() * most
            self.figures["freezes"] += 1
            self.tell(process.name, f"stands still for {duration:.3f} s", "main thread" if only_main else "")
            process.freeze(only_main=only_main)
            self.server.loop.call_later(duration, process.thaw)

    def outage(self) -> None:
        """Let the store be out of reach (S66)."""
        duration = self.faults.moment(8)
        self.figures["outages"] += 1
        self.tell("store", f"is away for {duration / SECOND:.3f} s", "")
        self.server.go_away(duration)

    def jump(self) -> None:
        """Set the store's clock, against everybody's own (S38)."""
        # A fence is drawn from the clock (S36): set back while a claim is forgotten, it draws one again.
        seconds = self.rng.choice((0.5, 6, 30) if self.faults.may_forget else (-8, -0.5, 0.5, 6, 30))
        self.figures["jumps"] += 1
        self.tell("store", f"its clock jumps by {seconds} s", "")
        self.watch.guards.budgets.is_clock_set_back |= seconds < 0
        self.watch.is_clock_set_back = self.watch.is_clock_set_back or seconds < 0
        self.server.clock.advance(seconds)

    # ── the run ───────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Live, heal, and judge."""
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            self.start_worker()
        if self.rng.random() < 0.3:
            self._start_scheduler()
        clients = self.rng.choice((1, 2, 3))
        for number in range(clients):
            process = self._process(f"client-{number + 1}")
            is_guarded = self.guards is not None
            note = self._noted(process.name)
            life = Client(process, self.rng, self._jobs, note, is_guarded=is_guarded)
            self._clients.append(life)
            share = self._operations // clients
            pace = 4 * CHAOS / SECOND / max(1, share)
            verbs: tuple[str, ...] = EVERYTHING if number == 0 else CALLS
            if is_guarded:
                verbs += GUARDS if number == 0 else USES
            process.run(life.live(share, pace, verbs))
        self.server.loop.create_task(self._mishap())
        if self.guards is not None:
            ups_and_downs = go_up_and_down(self.provider, self._guards_rng, lambda: self._is_healed)
            self.server.loop.create_task(ups_and_downs)
        self.schedule.run(lambda: False, CHAOS)
        self._heal()
        is_drained = self.schedule.run(self._is_drained, PATIENCE)
        for life in self._clients:
            self.wrong += life.wrong
        self._judge(is_drained=is_drained)

    def _noted(self, name: str) -> Any:
        return lambda verb, answer: self.tell(name, verb, answer)

    def _heal(self) -> None:
        """Let nothing go wrong any more, and hold nothing back."""
        self._is_healed = True
        self.tell("world", "is healed", "")
        self.faults.calm()
        self.server.away_until = 0
        self.provider.is_down = False
        for process in self.processes:
            process.thaw()
        for client in self._clients:
            client.is_told_to_end = True
        self.schedule.run(lambda: not self._is_called(), PATIENCE)
        for process, _ in list(self._workers):
            if process in self._old:  # the roll-out is over (S33)
                self._kill(process)
        subjects = [
            *(Subject(SubjectKind.QUEUE, name) for name in ("mail", "bulk", "fair")),
            *(Subject(SubjectKind.TENANT, name) for name in TENANTS),
            *(Subject(SubjectKind.TASK, name) for name in TASKS),
            Subject(SubjectKind.GATE, GATE.name),
        ]
        for subject in subjects:
            request = SubjectRequest(scope=Scope.all(), subject=subject, who="ops")
            self._check_override(subject)
            self.server.perform("policies", "reset", request)
            self.server.perform("policies", "resume", request)
            self.server.perform("policies", "reopen", request)
        if self.guards is not None:
            heal(self.server, self.guards)
        if not any(worker._has_duties for _, worker in self._workers):
            self.start_worker()

    def _check_override(self, subject: Subject) -> None:
        """Hold the store to overrides: they end by reset or by their time, and by nothing else (S54)."""
        now = self.server.clock.now()
        wanted, kept = self.watch.policies.override(subject, now), self.server.books.overrides.get(subject)
        found = None if kept is None or (kept.until is not None and kept.until <= now) else kept.change
        if found != wanted:
            self.wrong.append(f"the override of {subject} is {found}, and was set to {wanted}")

    def _is_called(self) -> bool:
        """Whether any client is still at work."""
        return any(one.main.tasks for one in self.processes if one.name.startswith("client"))

    def _is_drained(self) -> bool:
        if self.schedule.steps % 64:
            return False
        return all(is_finished(job.state) for job in self.server.books.jobs.values())

    def _judge(self, *, is_drained: bool) -> None:
        jobs = list(self.server.books.jobs.values())
        if not is_drained:
            left = [job for job in jobs if not is_finished(job.state)]
            told = ", ".join(f"{job.id} {job.task} is {job.state.value}: {job.because}" for job in left[:3])
            self.wrong.append(f"{len(left)} jobs are left long after all was healed: {told}")
        else:
            self.watch.finish()
        self.wrong += self.watch.wrong
        if is_drained:
            self.schedule.run(lambda: not any(map(_holds, self._workers)), 2 * LONGEST_PAUSE)
            self.wrong += [f"{one.name} holds what nobody has" for one, _ in filter(_holds, self._workers)]
        judged = self._judge_guards() if is_drained and self.guards is not None else []
        self.wrong += _at_once(violations(self.server.oracle, gates_are_stable=True))
        homes = dict.fromkeys(Home, 0)
        for job in jobs:
            homes[home(job.state)] += 1
            self.watch.records.append(
                Found(
                    job=str(job.id),
                    home=home(job.state),
                    state=job.state,
                    attempt=job.attempt,
                    failures=job.failures,
                    crashes=job.crashes,
                    tenant=job.tenant,
                )
            )
        reading = Reading(hot=homes[Home.HOT], history=homes[Home.HISTORY], dead=homes[Home.DEAD])
        verdict = history.check([*self.watch.records, *judged, reading], drained=is_drained)
        self.wrong += [str(one) for one in verdict.violations]
        self.figures |= {"jobs": len(jobs), "starts": verdict.counts.started, "stale": verdict.counts.stale}
        self.figures["reclaimed"] = verdict.counts.reclaimed

    def _judge_guards(self) -> list[Record]:
        assert self.guards is not None
        check = self.watch.guards
        wrong, records = judge(self.server, self.guards, check)
        self.wrong += wrong
        self.figures |= check.breakers.figures | check.budgets.figures
        return records

    def end(self) -> None:
        """Leave nothing behind."""
        self.server.is_over = True
        for process in self.processes:
            process.close()
        left = self.schedule.end()
        if left:
            self.wrong.append(f"{left} tasks did not end when they were cancelled")


def _draw_lanes(rng: Random) -> list[Lane]:
    headroom = rng.choice((0, None, 1))
    slots = rng.choice((1, 2, 4))
    rest = Lane("rest", max(slots, (headroom or 0) + 1), ["mail", "bulk"], headroom=headroom)
    # Without headroom, which goes out of turn: here the turns of every claim are judged.
    fair = Lane("fair", rng.choice((1, 2)), ["fair", "mail"] if rng.random() < 0.5 else ["fair"], headroom=0)
    return [rest, fair]


def _holds(one: tuple[Process, WorkerRuntime]) -> bool:
    """Whether a worker has slots taken, or attempts in hand."""
    parts = one[1]._parts
    return parts is not None and bool(
        parts.attempts.claimed() or parts.attempts.running() or any(lane.claimed for lane in parts.lanes)
    )


def _at_once(work: Any) -> Any:
    """Run a coroutine that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")
