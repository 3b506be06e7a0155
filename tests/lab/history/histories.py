"""Histories to check: a recorder for hand-written ones, and a small correct store that runs at random.

The store keeps every promise; its clock, its jobs and its mishaps come from one seed. Knows no checker.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from fairlane.lab.ledger import (
    Acknowledged,
    Attempted,
    Bound,
    Ceiling,
    Counted,
    Ended,
    Found,
    Paid,
    Reading,
    Reclaimed,
    Record,
    Settled,
    Stale,
    Started,
    Withdrawn,
)
from fairlane.model.lifecycle.states import HOT, WAITING, Event, Home, State, home, target
from fairlane.model.retry.decision import MAX_LOSSES


class Recorder:
    """Records events, one microsecond apart."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.now = 0

    def write(self, *records: Record) -> None:
        """Append, and let time pass."""
        self.records.extend(records)
        self.now += 1

    def enqueue(self, job: str, **fields: Any) -> None:
        """Send an enqueue and have it confirmed."""
        sent = Attempted(job=job, tenant="acme", queue="mail", task="send", at=self.now)
        self.write(replace(sent, **{name: value for name, value in fields.items() if name != "created"}))
        known = Acknowledged(job=job, tenant="acme", queue="mail", task="send", at=self.now)
        self.write(replace(known, **fields))

    def start(self, job: str, fence: int, attempt: int = 1, **fields: Any) -> None:
        """Begin a handler."""
        begun = Started(job=job, attempt=attempt, fence=fence, worker="w1", pid=7, at=self.now)
        self.write(replace(begun, **fields))

    def leave(
        self, job: str, fence: int, attempt: int = 1, outcome: Literal["returned", "raised"] = "returned"
    ) -> None:
        """End a handler."""
        self.write(Ended(job=job, attempt=attempt, fence=fence, outcome=outcome, at=self.now))

    def settle(
        self,
        job: str,
        fence: int,
        attempt: int = 1,
        event: Event = Event.SUCCEED,
        state: State | None = None,
        spent: int | None = None,
    ) -> None:
        """Have a settlement accepted."""
        state = state or target(event)
        end = Settled(job=job, attempt=attempt, fence=fence, event=event, state=state, at=self.now)
        self.write(replace(end, spent=spent))

    def give_back(self, job: str, fence: int, attempt: int = 1, state: State = State.READY) -> None:
        """Have a claim accepted back of which the worker says that no handler started."""
        end = Settled(job=job, attempt=attempt, fence=fence, event=Event.HAND_BACK, state=state, at=self.now)
        self.write(replace(end, unstarted=True))

    def reclaim(self, job: str, fence: int, state: State = State.READY) -> None:
        """Have a lost claim taken back."""
        self.write(Reclaimed(job=job, fence=fence, state=state, at=self.now))

    def withdraw(self, job: str, state: State = State.CANCELLED) -> None:
        """Have a waiting job ended."""
        self.write(Withdrawn(job=job, state=state, at=self.now))

    def find(
        self, job: str, state: State = State.SUCCEEDED, attempt: int = 1, failures: int = 0, **fields: Any
    ) -> None:
        """Read a row at the end."""
        row = Found(job=job, home=home(state), state=state, attempt=attempt, failures=failures)
        self.write(replace(row, **fields))

    def run(self, job: str, fence: int = 10, **fields: Any) -> None:
        """Tell the whole plain life of a job."""
        self.enqueue(job, **fields)
        self.start(job, fence)
        self.leave(job, fence)
        self.settle(job, fence)
        self.find(job)

    def told(self) -> list[Record]:
        """Close the reading and return the history."""
        return [*self.records, reading(self.records)]


def reading(records: Sequence[Record]) -> Reading:
    """Count the rows of each home."""
    homes = [record.home for record in records if isinstance(record, Found)]
    return Reading(**{place.value: homes.count(place) for place in Home})


def work(job: str, **fields: Any) -> dict[str, Any]:
    """The fields that every enqueue has."""
    return {"job": job, "tenant": "acme", "queue": "mail", "task": "send", "at": 0} | fields


def lost_once(run: Recorder, job: str = "a", **fields: Any) -> None:
    """Record a worker that was killed, and the attempt that followed elsewhere."""
    run.enqueue(job, **fields)
    run.start(job, 10)
    run.reclaim(job, 10)
    run.start(job, 20, 2)
    run.leave(job, 20, 2)
    run.settle(job, 20, 2)
    run.find(job, attempt=2, crashes=1)


# ── a store that keeps its promises ──────────────────────────────────────────

QUEUES = ("mail", "paced", "screens")
RUNNING = Bound(limit=2, queue="mail", tenant="acme")
GATE = Bound(limit=1, gate="browser")
RATE = Bound(limit=1, per=10, burst=2, slack=4, queue="paced")
CEILING = Ceiling(budget="ai", ceiling=14, estimate=3)
"""What the store enforces: two running for a tenant, one at a gate, a start in 10 us with a burst of two.

Jobs of the first queue are under a budget, which is lifted in the end so that all may finish.
"""

_ENDINGS = (
    Event.SUCCEED,
    Event.SUCCEED,
    Event.RETRY,
    Event.SNOOZE,
    Event.HAND_BACK,
    Event.FAIL,
    Event.OBEY_CANCEL,
)
_FAILURES = (Event.RETRY, Event.FAIL)
_MAX_FAILURES = 3


class Row(msgspec.Struct):
    """A job in the store."""

    job: str
    tenant: str
    queue: str
    state: State = State.READY
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    fence: int = 0

    @property
    def gate(self) -> str | None:
        """Screenshots need the browser."""
        return "browser" if self.queue == "screens" else None

    @property
    def budget(self) -> str | None:
        """Mails cost money."""
        return CEILING.budget if self.queue == "mail" else None


class Handler(msgspec.Struct):
    """An attempt in some worker, which may not know that its claim is lost."""

    row: Row
    attempt: int
    fence: int
    is_live: bool = True
    is_started: bool = False
    is_left: bool = False
    paid: int = 0
    counted: int = 0

    @property
    def reserved(self) -> int:
        """What is reserved for it under the budget, before it ends."""
        return CEILING.estimate if self.is_live and self.row.budget else 0

    def fields(self, at: int) -> dict[str, Any]:
        """What every line of this attempt says."""
        return {"job": self.row.job, "attempt": self.attempt, "fence": self.fence, "at": at}


class Store:
    """Runs at random by the rules, and is recorded from outside."""

    def __init__(self, seed: int, jobs: int) -> None:
        self.random = Random(seed)
        self.clock = 1_000
        self.arrival = 0
        self.left = jobs
        self.rows: list[Row] = []
        self.handlers: list[Handler] = []
        self.spent = dict.fromkeys(("acme", "globex"), 0)
        self.is_lifted = False
        self.records: list[Record] = [RUNNING, GATE, RATE]

    def live(self, steps: int, *, drained: bool) -> list[Record]:
        """Return the history of this many steps and, with `drained`, of the time until all jobs are done."""
        actions = (self.enqueue, self.claim, self.claim, self.act, self.act, self.act, self.wait)
        for _ in range(steps):
            self.clock += self.random.randint(1, 4)
            self.random.choice(actions)()
        self.is_lifted = True
        self.records.append(replace(CEILING, until=self.clock))
        while drained and any(row.state in HOT for row in self.rows):
            self.clock += RATE.per or 0
            self.wait()
            self.claim()
            for handler in [one for one in self.handlers if one.is_live]:
                self.begin(handler)
                self.clock += 1
                self.end(handler, Event.SUCCEED)
        for row in self.rows:
            self.records.append(
                Found(
                    job=row.job,
                    home=home(row.state),
                    state=row.state,
                    attempt=row.attempt,
                    failures=row.failures,
                    crashes=row.crashes,
                    tenant=row.tenant,
                )
            )
        self.records += [
            Counted(budget=CEILING.budget, tenant=tenant, task="do", spent=spent)
            for tenant, spent in self.spent.items()
        ]
        return [*self.records, reading(self.records)]

    def enqueue(self) -> None:
        """Send a job, alone or as a batch of two; a few replies are lost, with or without the jobs."""
        if not self.left:
            return
        size = 1 if self.random.random() < 0.8 else 2
        is_made, is_heard = self.random.random() < 0.9, self.random.random() < 0.8
        queue, tenant = self.random.choice(QUEUES), self.random.choice(("acme", "acme", "globex"))
        for number in range(size):
            row = Row(f"job-{self.left}-{number}", tenant, queue)
            sent: dict[str, Any] = {
                "job": row.job,
                "tenant": tenant,
                "queue": queue,
                "task": "do",
                "gate": row.gate,
                "budget": row.budget,
            }
            batch = f"batch-{self.left}" if size > 1 else None
            self.records.append(Attempted(**sent, at=self.clock, batch=batch, key=f"key-{row.job}"))
            if is_made:
                self.rows.append(row)
                if is_heard:
                    self.records.append(
                        Acknowledged(**sent, at=self.clock, batch=batch, key=f"key-{row.job}")
                    )
                if self.random.random() < 0.1:
                    self.records.append(Acknowledged(**sent, at=self.clock, created=False))
        self.left -= 1

    def claim(self) -> None:
        """Hand out one ready job that its limits let run."""
        able = [row for row in self.rows if row.state is State.READY and self.may_run(row)]
        if not able:
            return
        row = self.random.choice(able)
        row.attempt += 1
        row.fence = max(row.fence + 1, self.clock)
        row.state = State.RUNNING
        handler = Handler(row, row.attempt, row.fence)
        self.handlers.append(handler)
        if row.queue == "paced":
            self.arrival = max(self.arrival, self.clock) + (RATE.per or 0)
            self.clock += self.random.randint(0, RATE.slack)
            self.begin(handler)

    def may_run(self, row: Row) -> bool:
        """Whether running limit, gate, rate and budget have room."""
        used = sum(self.spent.values()) + sum(one.reserved for one in self.handlers)
        if row.budget and not self.is_lifted and used + CEILING.estimate > CEILING.ceiling:
            return False
        held = [one.row for one in self.handlers if one.is_live]
        if row.queue == "paced":
            return self.clock >= self.arrival - (RATE.burst - 1) * (RATE.per or 0)
        if row.queue == "screens":
            return not any(other.queue == "screens" for other in held)
        return sum((other.queue, other.tenant) == (row.queue, row.tenant) for other in held) < RUNNING.limit

    def act(self) -> None:
        """Let something happen to one attempt, live or lost."""
        if not self.handlers:
            return
        handler = self.random.choice(self.handlers)
        if not handler.is_live:
            self.haunt(handler)
        elif self.random.random() < 0.2:
            self.lose(handler)
        elif not handler.is_started:
            what = self.random.random()
            self.begin(handler) if what < 0.8 else self.end(handler, Event.HAND_BACK, unstarted=what > 0.9)
        else:
            self.end(handler, self.random.choice(_ENDINGS))

    def begin(self, handler: Handler) -> None:
        """Start a handler once."""
        if not handler.is_started:
            handler.is_started = True
            tenant = handler.row.tenant
            pid = 1_000 + handler.fence if handler.row.crashes else 7  # what crashed runs alone from then on
            self.records.append(Started(**handler.fields(self.clock), worker="w1", pid=pid, tenant=tenant))
            if handler.row.budget:
                handler.paid = self.random.randint(0, 5)
                self.records.append(
                    Paid(job=handler.row.job, fence=handler.fence, total=handler.paid, at=self.clock)
                )

    def count(self, handler: Handler, total: int) -> None:
        """Count what a claim has spent, instead of what was counted for it before."""
        self.spent[handler.row.tenant] += total - handler.counted
        handler.counted = total

    def leave(self, handler: Handler, outcome: Literal["returned", "raised"]) -> None:
        """End a handler once."""
        if handler.is_started and not handler.is_left:
            handler.is_left = True
            self.records.append(Ended(**handler.fields(self.clock), outcome=outcome))

    def end(self, handler: Handler, event: Event, *, unstarted: bool = False) -> None:
        """Settle; one worker in ten is killed before it can say so."""
        row, state = handler.row, target(event)
        self.leave(handler, "returned" if event in {Event.SUCCEED, Event.SNOOZE} else "raised")
        row.failures += event in _FAILURES
        if event is Event.RETRY and row.failures >= _MAX_FAILURES:
            event, state = Event.EXHAUST, State.DEAD
        handler.is_live, row.state = False, state
        self.count(handler, handler.paid)
        if self.random.random() < 0.9:
            end = Settled(**handler.fields(self.clock), event=event, state=state, unstarted=unstarted)
            self.records.append(replace(end, spent=handler.paid if row.budget else None))
        if unstarted:
            row.attempt -= 1
            self.handlers.remove(handler)
        self.clock += 1

    def lose(self, handler: Handler) -> None:
        """Take the claim back; one duty in ten is killed before it can say so."""
        row = handler.row
        self.count(handler, max(handler.paid, handler.reserved))
        handler.is_live = False
        row.crashes += 1
        row.state = State.DEAD if row.crashes >= MAX_LOSSES else State.READY
        if self.random.random() < 0.9:
            lost = Reclaimed(job=row.job, fence=handler.fence, state=row.state, at=self.clock)
            self.records.append(lost)
        self.clock += 1

    def haunt(self, handler: Handler) -> None:
        """Wake a worker that was paused: it starts or ends what it no longer holds, and is refused."""
        if handler.row.queue != "paced":
            self.begin(handler)
        self.leave(handler, "returned")
        if self.random.random() < 0.5:  # else its report is lost with it
            self.count(handler, handler.paid)
        self.records.append(Stale(job=handler.row.job, fence=handler.fence, at=self.clock))
        self.handlers.remove(handler)

    def wait(self) -> None:
        """Let delayed jobs become due; sometimes cancel a waiting one."""
        waiting = [row for row in self.rows if row.state in WAITING]
        for row in waiting:
            row.state = State.READY
        if waiting and self.random.random() < 0.1:
            row = self.random.choice(waiting)
            row.state = self.random.choice((State.CANCELLED, State.DEAD))
            self.records.append(Withdrawn(job=row.job, state=row.state, at=self.clock))


def good_history(seed: int, jobs: int = 12, *, drained: bool = False) -> list[Record]:
    """Return the history of a correct store for this seed."""
    return Store(seed, jobs).live(12 * jobs, drained=drained)
