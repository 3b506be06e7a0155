"""The registry facet: workers, tasks, the lead, wake-ups."""

from __future__ import annotations

from fairlane.model.outage import GAP_MARGIN
from fairlane.store.contract.published import key_of, listed
from fairlane.store.contract.registry import (
    CleanRequest,
    HeartbeatRequest,
    LeadReply,
    LeadRequest,
    LeaveRequest,
    Pulse,
    RegisterRequest,
    TasksRequest,
    TaskView,
    WaitRequest,
    WakeRequest,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import Request
from fairlane.store.redis.cards import read_task, read_workers
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import pack
from fairlane.store.redis.wake import Wake


class RedisRegistry:
    """Who is there."""

    def __init__(self, wire: Wire) -> None:
        """Share the connections with the other facets."""
        self._wire = wire
        self._wake = Wake(wire)

    async def expect(self, calls: int, *, waits: bool) -> None:
        """See the contract: there is room for more than a worker has."""

    async def register(self, request: RegisterRequest) -> None:
        """See the contract."""
        card = request.card
        tasks = [part for task in card.tasks for part in (key_of(task), pack(task))]
        await self._wire.run("register", card.id, pack(card), request.renew_every + GAP_MARGIN, *tasks)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """See the contract."""
        numbers = (request.running, request.settled, request.failed, request.renew_every + GAP_MARGIN)
        return bool(await self._wire.run("heartbeat", request.worker, request.state, *numbers))

    async def leave(self, request: LeaveRequest) -> None:
        """See the contract."""
        await self._wire.run("leave", request.worker)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """See the contract."""
        now, views = await read_workers(self._wire)
        within = request.seen_within
        return tuple(view for view in views if within is None or now - view.beat_at <= within)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """See the contract."""
        _, cards, seen = await self._wire.run("registry", NAMES["cards"], NAMES["cards_seen"])
        seen_at = dict(zip(seen[::2], map(int, seen[1::2]), strict=True))
        keyed = zip(cards[::2], cards[1::2], strict=True)
        return listed(((read_task(card), seen_at[key]) for key, card in keyed), request)

    async def clean(self, request: CleanRequest) -> tuple[str, ...]:
        """See the contract."""
        silent = await self._wire.run("clean", request.silent_for)
        return tuple(sorted(worker.decode() for worker in silent))

    async def lead(self, request: LeadRequest) -> LeadReply:
        """See the contract."""
        worker, until = await self._wire.run("lead", request.name, request.worker, request.lease)
        return LeadReply(worker.decode(), until)

    async def pulse(self, request: Request) -> Pulse:  # noqa: ARG002 (the contract's shape)
        """See the contract."""
        now, meta = await self._wire.run("registry", NAMES["meta"])
        known = dict(zip(meta[::2], meta[1::2], strict=True))
        beat_at, resumed_at = known.get(b"beat_at"), known.get(b"resumed_at")
        return Pulse(
            now, None if beat_at is None else int(beat_at), None if resumed_at is None else int(resumed_at)
        )

    async def wake(self, request: WakeRequest) -> None:
        """See the contract."""
        await self._wire.run("move", pack((request.queues, request.workers)))

    async def wait(self, request: WaitRequest) -> bool:
        """See the contract."""
        return await self._wake.wait(request.worker, request.queues, request.at_most)
