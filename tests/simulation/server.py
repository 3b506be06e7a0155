"""The oracle as a server that processes reach through a bad line. Knows nothing of what they want from it.

A call travels, is done whole or not at all, and its answer travels back: each way takes time, and once it is
sent it is done even if its caller is dead by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeAlias, cast

from fairlane.model.errors import EnqueueUnknown, FairlaneError, StoreBusy, StoreUnavailable
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import NewJob, Settlement
from fairlane.store.contract import FACETS, Store
from fairlane.store.contract.claims import QueueRequest, Renewal
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.contract.request import Request
from tests.oracle.clock import START, DrivenClock
from tests.oracle.store import OracleStore
from tests.simulation.faults import Fate, Faults
from tests.simulation.loop import Schedule, SimLoop

Answer: TypeAlias = tuple[Any, Exception | None]
"""What a verb gave, or what it raised."""


class Call(NamedTuple):
    """One thing that was done to the store: when on its own clock, what was asked, what it answered."""

    at: Instant
    facet: str
    verb: str
    request: Any
    answer: Any
    error: str


class StoreClock(DrivenClock):
    """The store's own clock: it goes with the virtual time, and jumps when it is told to."""

    def __init__(self, schedule: Schedule) -> None:
        """Go with a schedule."""
        super().__init__(START)
        self._schedule = schedule

    def now(self) -> Instant:
        """Say what time it is for the store."""
        return super().now() + self._schedule.now


class Watcher:
    """Hears of everything that is done to the store, before and after."""

    def sending(self, jobs: tuple[NewJob, ...]) -> None:
        """Hear that jobs are about to be sent to the store, together or not at all."""

    def before(self, facet: str, verb: str, request: Any) -> None:
        """Hear what is about to be done."""

    def after(self, facet: str, verb: str, request: Any, answer: Answer) -> None:
        """Hear what was done, and what the store said."""

    def forgot(self, request: Any, answer: Any) -> None:
        """Hear that the store has lost these claims."""


class Server:
    """One installation, the lines to it, and what is known of what was done to it.

    `slow_verbs` take more than one step; a store has none, but a broken one may.
    """

    slow_verbs: frozenset[str] = frozenset()

    def __init__(self, schedule: Schedule, clock: StoreClock, faults: Faults, watcher: Watcher) -> None:
        """Begin empty and at its place."""
        self.clock = clock
        self.oracle = OracleStore(self.clock)
        self.loop = schedule.loop("store")
        self.faults = faults
        self.calls: list[Call] | None = None
        self.away_until: Micros = 0
        self.is_over = False
        self.concurrent_calls = 1
        self.tell: Callable[[str, str, object], None] = lambda _, __, ___: None
        self._schedule = schedule
        self._watcher = watcher

    @property
    def books(self) -> Any:
        """The oracle's books, for those who look without asking."""
        return self.oracle.jobs._core.books

    # ── a call ────────────────────────────────────────────────────────────────

    async def ask(self, who: str, facet: str, verb: str, request: Any) -> Any:
        """Send a call and wait for its answer; the running loop is the caller's."""
        if self.is_over:
            raise StoreUnavailable("the run is over")
        if verb == "enqueue":
            self._watcher.sending(request.jobs)
        elif verb == "reprocess":
            for item in request.items:
                self._watcher.sending((item.job,))
        loop = cast("SimLoop", asyncio.get_running_loop())
        line = _Line(self, who, loop.create_future(), (facet, verb, request), self.faults.fate(verb))
        self._later(self.loop, self.faults.latency(), line.arrive)
        try:
            return await line.future
        finally:
            line.give_up()

    def _later(self, loop: SimLoop, delay: Micros, callback: Callable[..., None], *args: Any) -> None:
        handle = asyncio.Handle(callback, args, loop)
        self._schedule.add_timer(self._schedule.now + delay, loop, handle)

    @property
    def is_away(self) -> bool:
        """Whether the store cannot be reached."""
        return self._schedule.now < self.away_until

    def go_away(self, duration: Micros) -> None:
        """Be out of reach for a while."""
        self.away_until = max(self.away_until, self._schedule.now + duration)

    # ── what is done ──────────────────────────────────────────────────────────

    def perform(self, facet: str, verb: str, request: Any) -> Any:
        """Do something to the store, now, and have its answer; what it raises is raised."""
        answer, error = self.do(facet, verb, request)
        if error is not None:
            raise error
        return answer

    def do(self, facet: str, verb: str, request: Any) -> Answer:
        """Do something to the store in one step."""
        work = self._begin(facet, verb, request)
        answer: Answer
        try:
            work.send(None)
        except StopIteration as done:
            answer = (done.value, None)
        except (FairlaneError, ValueError, LookupError) as error:
            answer = (None, error)
        else:
            work.close()
            message = f"{verb} waits for something"
            raise AssertionError(message)
        self._note(facet, verb, request, answer)
        return answer

    async def do_slowly(self, facet: str, verb: str, request: Any) -> Answer:
        """Do something that takes more than one step."""
        answer: Answer
        try:
            answer = (await self._begin(facet, verb, request), None)
        except (FairlaneError, ValueError, LookupError) as error:
            answer = (None, error)
        self._note(facet, verb, request, answer)
        return answer

    def do_and_forget(self, facet: str, verb: str, request: Any) -> Answer:
        """Claim, and die before that was kept: the caller has an answer, the store has nothing (S36)."""
        core = self.oracle.jobs._core
        kept = core.books.copy()
        answer = self.do(facet, verb, request)
        core.books = kept
        self._watcher.forgot(request, answer[0])
        self.calls = None  # no real store can be told to do the same
        self.go_away(self.faults.moment(1))
        return answer

    def _begin(self, facet: str, verb: str, request: Any) -> Coroutine[Any, Any, Any]:
        self._watcher.before(facet, verb, request)
        return cast("Coroutine[Any, Any, Any]", getattr(getattr(self.oracle, facet), verb)(request))

    def _note(self, facet: str, verb: str, request: Any, answer: Answer) -> None:
        if self.calls is not None and verb not in {"wait", "wake"}:
            error = "" if answer[1] is None else type(answer[1]).__name__
            self.calls.append(Call(self.clock.now(), facet, verb, request, answer[0], error))
        self._watcher.after(facet, verb, request, answer)


class _Line:
    """One call on its way."""

    __slots__ = ("_facet", "_fate", "_request", "_server", "_verb", "_waiting", "_who", "future")

    def __init__(
        self,
        server: Server,
        who: str,
        future: asyncio.Future[Any],
        asked: tuple[str, str, Any],
        fate: Fate,
    ) -> None:
        self._server = server
        self._who = who
        self.future = future
        self._facet, self._verb, self._request = asked
        self._fate = fate
        self._waiting: asyncio.Task[None] | None = None

    def give_up(self) -> None:
        """Expect nothing more. Only a wait ends with its caller: anything else is done all the same."""
        if self._waiting is not None:
            self._waiting.cancel()

    def arrive(self) -> None:
        """Be at the store."""
        server, fate = self._server, self._fate
        if fate is not Fate.FINE:
            server.tell(self._who, f"{self._verb} {fate.name.lower()}", self._request)
        if server.is_away or fate is Fate.REFUSED:
            self._fail(StoreUnavailable("the store is away"))
        elif fate is Fate.SWALLOWED:
            self._fail(self._unknown())
        elif self._verb == "wait":
            self._listen()
        elif self._verb in server.slow_verbs:
            server.loop.create_task(self._work())
        else:
            act = server.do_and_forget if fate is Fate.FORGOTTEN else server.do
            self._answer(act(self._facet, self._verb, self._request))

    async def _work(self) -> None:
        self._answer(await self._server.do_slowly(self._facet, self._verb, self._request))

    def _answer(self, answer: Answer) -> None:
        server = self._server
        if self._fate is Fate.TWICE:
            server._later(server.loop, server.faults.moment(4), self._again)
        if self._fate is Fate.UNANSWERED:
            self._fail(self._unknown())
        else:
            self._reply(*answer)

    def _again(self) -> None:
        server = self._server
        if server.is_over or server.is_away:
            return
        server.tell(self._who, f"{self._verb} again", self._request)
        if self._verb in server.slow_verbs:
            server.loop.create_task(server.do_slowly(self._facet, self._verb, self._request))
        else:
            server.do(self._facet, self._verb, self._request)

    def _unknown(self) -> Exception:
        if self._verb == "enqueue":
            return EnqueueUnknown("the answer was lost")
        return StoreBusy("no answer") if self._verb == "heartbeat" else StoreUnavailable("no answer")

    def _fail(self, error: Exception) -> None:
        self._reply(None, error)

    def _reply(self, value: Any, error: Exception | None) -> None:
        server = self._server
        loop = cast("SimLoop", self.future.get_loop())
        server._later(loop, server.faults.latency(), self._land, value, error)

    def _land(self, value: Any, error: Exception | None) -> None:
        """Be back; the store may have gone meanwhile, and the answer with it."""
        if self.future.done():
            return
        if error is None and self._server.is_away:
            error = self._unknown()
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)

    # ── a wait for hints ──────────────────────────────────────────────────────

    def _listen(self) -> None:
        """Wait at the store, or in vain: hints may be lost."""
        request = cast("WaitRequest", self._request)
        if self._server.faults.loses_hint():
            self._server._later(self._server.loop, request.at_most, self._reply, False, None)
        else:
            self._waiting = self._server.loop.create_task(self._await_hint(request))

    async def _await_hint(self, request: WaitRequest) -> None:
        seconds = request.at_most / SECOND
        is_heard = await self._server.oracle.jobs._core.await_hint(request.worker, request.queues, seconds)
        self._reply(is_heard, None)


class _Facet:
    """The verbs of a facet, as a process at the end of a line has them."""

    def __init__(self, server: Server, who: str, name: str) -> None:
        self._server = server
        self._who = who
        self._name = name

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def ask(request: Any = None) -> Any:
            return await self._server.ask(self._who, self._name, verb, request)

        self.__dict__[verb] = ask
        return ask

    @property
    def concurrent_calls(self) -> int:
        """Ask as one asks a file in some runs, as one asks a server in others."""
        return self._server.concurrent_calls

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Have as many lines as anybody wants."""

    async def aclose(self) -> None:
        """Let go of the line: there is nothing to let go of."""


def link(server: Server, who: str) -> Store:
    """Return the store as a process at the end of a line has it."""
    made = _Link()
    for name in FACETS:
        setattr(made, name, _Facet(server, who, name))
    return cast("Store", made)


class _Link:
    """Six facets."""


def brief(about: object) -> str:
    """Say in a few words what a call was about, for the trace of a failure."""
    for name in ("settlements", "renewals", "jobs", "ids", "queue_requests"):
        items = getattr(about, name, None)
        if isinstance(items, tuple):
            return f"{name}: " + ", ".join(_item(one) for one in items)
    return "" if isinstance(about, Request) else str(about)[:160]


def _item(one: Any) -> str:
    match one:
        case Settlement():
            return f"{one.id} {one.event.value} under {one.fence}"
        case Renewal():
            return f"{one.id} under {one.fence}"
        case NewJob():
            return f"{one.id} {one.task} of {one.tenant}"
        case QueueRequest():
            return f"{one.queue} {one.limit}"
    return str(one)
