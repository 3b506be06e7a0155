"""`app.workers`: the worker processes, what they serve, what they run, their last heartbeat.

A worker can be asked, and told to pause, resume or stop, from any machine (S70). All tenants share the
workers, so from inside a tenant they can be neither read nor asked (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import uuid4

import msgspec

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import text_of
from fairlane.app.admin.worker_status import QuestionKind, WorkerAnswer, WorkerStatus
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.checking import instance
from fairlane.model.instants import SECOND, Instant, Micros, to_datetime, to_micros
from fairlane.model.journal.operations import Operation
from fairlane.model.worker_errors import WorkerNotFound, WorkerSilent
from fairlane.store.contract.mailbox import AskRequest, ReadAnswerRequest
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest, WorkerView
from fairlane.store.contract.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLane:
    """A lane of a worker: its slots, and the queues it serves."""

    name: str
    slots: int
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker process as of its last heartbeat, at `beat_at`.

    `state` is `starting`, `idle`, `busy`, `paused` or `draining`, or `silent` after 15 seconds without a
    heartbeat. `held` counts the jobs it runs, out of `slots`. `settled` and `failed` count attempts since it
    started. `tasks` names the tasks that it can run. `memory` is the resident memory of its process in bytes,
    `cpu` how many processors were busy with it since the heartbeat before; None where that is not known.
    Neither counts child processes.
    """

    id: str
    host: str
    pid: int
    version: str
    state: str
    queues: Sequence[str]
    slots: int
    lanes: Sequence[WorkerLane]
    held: int
    settled: int
    failed: int
    tasks: Sequence[str]
    labels: Sequence[str]
    started_at: datetime
    beat_at: datetime
    memory: int | None = None
    cpu: float | None = None

    @property
    def is_live(self) -> bool:
        """Whether it sent a heartbeat in the last 15 seconds."""
        return self.state != "silent"


ASK_TIMEOUT: Final = 15.0
"""Seconds that a worker has for its answer: it looks for questions every two."""

_LOOK_EVERY: Final[Micros] = SECOND // 10
_read_answer: Final = msgspec.json.Decoder(WorkerAnswer).decode


class Workers:
    """The workers of a store. Each method has an async twin whose name starts with `a`.

    Methods that name a worker take its id or the beginning of it, as long as no other begins so.
    `WorkerNotFound` if there is none, `WorkerSilent` if it does not answer within `at_most` seconds.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, id: str, /) -> Worker:
        """Return one worker as of its last heartbeat."""
        return self._client.portal.run(self.aget(id))

    async def aget(self, id: str, /) -> Worker:
        """Return one worker as of its last heartbeat."""
        instance("id", id, str, "the id of a worker")
        workers = {one.id: one for one in await self.alist()}
        return workers[_matching(id, list(workers))]

    def status(self, id: str, *, at_most: float = ASK_TIMEOUT) -> WorkerStatus:
        """Return what a worker does now: each slot, its lanes, its memory."""
        return self._client.portal.run(self.astatus(id, at_most=at_most))

    async def astatus(self, id: str, *, at_most: float = ASK_TIMEOUT) -> WorkerStatus:
        """Return what a worker does now; see `status`."""
        return (await self._ask(id, "status", at_most)).status

    def dump(self, id: str, *, memory: bool = False, at_most: float = ASK_TIMEOUT) -> str:
        """Return the stacks of all threads and tasks of a worker; with `memory` also what holds memory."""
        return self._client.portal.run(self.adump(id, memory=memory, at_most=at_most))

    async def adump(self, id: str, *, memory: bool = False, at_most: float = ASK_TIMEOUT) -> str:
        """Return the stacks of a worker; see `dump`."""
        return (await self._ask(id, "memory" if memory else "dump", at_most)).text

    def pause(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a worker claim nothing until `resume`, or until it ends; running jobs go on."""
        return self._client.portal.run(self.apause(id, at_most=at_most, note=note))

    async def apause(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a worker claim nothing until `aresume`; see `pause`."""
        return (await self._tell(id, "pause", at_most, note)).status

    def resume(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a paused worker claim again."""
        return self._client.portal.run(self.aresume(id, at_most=at_most, note=note))

    async def aresume(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a paused worker claim again."""
        return (await self._tell(id, "resume", at_most, note)).status

    def stop(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a worker stop as after SIGTERM: running jobs go on until its shutdown deadline."""
        return self._client.portal.run(self.astop(id, at_most=at_most, note=note))

    async def astop(self, id: str, *, at_most: float = ASK_TIMEOUT, note: str = "") -> WorkerStatus:
        """Let a worker stop as after SIGTERM; see `stop`."""
        return (await self._tell(id, "stop", at_most, note)).status

    async def _tell(self, id: str, kind: QuestionKind, at_most: float, note: str) -> WorkerAnswer:
        """Give a worker an order and wait for its answer, which shows the worker before it obeys."""
        return await self._ask(id, kind, at_most, operation(f"workers.{kind}", note=text_of("note", note)))

    async def _ask(
        self, id: str, kind: QuestionKind, at_most: float, done: Operation | None = None
    ) -> WorkerAnswer:
        """Ask a worker and wait for its answer."""
        scope = scope_of_all("workers serve all tenants")
        instance("id", id, str, "the id of a worker")
        valid_for = to_micros(at_most)
        worker = _matching(id, [one.id for one in await self.alist()])
        mailbox, question, clock = self._client.store.mailbox, uuid4(), self._client.clock
        asked = AskRequest(
            scope=scope, id=question, worker=worker, kind=kind, valid_for=valid_for, operation=done
        )
        if not await mailbox.ask(asked):
            raise WorkerNotFound(f"worker {worker} has just left")
        give_up_at = clock.elapsed() + valid_for
        while clock.elapsed() < give_up_at:
            found = await mailbox.read(ReadAnswerRequest(scope=scope, id=question))
            if found is not None and found.text is not None:
                answer = _read_answer(found.text)
                if answer.error is not None:
                    raise WorkerSilent(f"worker {worker}: {answer.error}")
                return answer
            await clock.wait(_LOOK_EVERY)
        raise _silent(worker, at_most, await self.alist())

    def list(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id; with `live`, only those with a heartbeat in the last 15 seconds.

        A worker that stopped in good order is not listed. One that died is listed as silent until its record
        is deleted.
        """
        return self._client.portal.run(self.alist(live=live))

    async def alist(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id, or only the live ones; see `list`."""
        scope = scope_of_all("workers serve all tenants")
        registry = self._client.store.registry
        request = WorkersRequest(scope=scope, seen_within=LIVE_WITHIN if live else None)
        found = await registry.workers(request)
        now = (await registry.status(Request(scope=scope))).now
        return tuple(worker_view(view, now) for view in found)


def _matching(id: str, known: Sequence[str]) -> str:
    """Return the only known id that is, or begins with, this one; the word `worker-` may be left out."""
    if id in known:
        return id
    found = [one for one in known if id and one.startswith((id, f"worker-{id}"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkerNotFound(f"{len(found)} workers begin with {id[:80]!r}: {', '.join(found[:5])}")
    raise WorkerNotFound(f"no worker {id[:80]!r} is registered; `fairlane workers` lists them")


def _silent(worker: str, at_most: float, workers: Sequence[Worker]) -> WorkerSilent:
    state = next((one.state for one in workers if one.id == worker), None)
    if state is None:
        why = "it has left meanwhile"
    elif state == "silent":
        why = "it has sent no heartbeat for 15 seconds: it is dead, or cut off from the store"
    else:
        why = "it still sends heartbeats: it may be an older version, or code that keeps the interpreter lock"
    return WorkerSilent(f"worker {worker} did not answer within {at_most:g} s; {why}")


def worker_view(view: WorkerView, now: Instant) -> Worker:
    """Return the view of a worker at an instant of the store's clock."""
    record = view.record
    return Worker(
        id=record.id,
        host=record.host,
        pid=record.pid,
        version=record.version,
        state=view.state if now - view.beat_at <= LIVE_WITHIN else "silent",
        queues=record.queues,
        slots=record.slots,
        lanes=tuple(
            WorkerLane(name=lane.name, slots=lane.slots, queues=lane.queues) for lane in record.lanes
        ),
        held=view.running,
        settled=view.settled,
        failed=view.failed,
        tasks=tuple(task.name for task in record.tasks),
        labels=record.labels,
        started_at=to_datetime(view.started_at),
        beat_at=to_datetime(view.beat_at),
        memory=view.memory,
        cpu=view.cpu,
    )
