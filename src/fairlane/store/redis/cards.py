"""Keep what workers publish of themselves as bytes, and read it back."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import Instant
from fairlane.store.contract.registry import TaskCard, WorkerCard, WorkerState, WorkerView
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.keys import NAMES

read_card = msgspec.msgpack.Decoder(WorkerCard).decode
read_task = msgspec.msgpack.Decoder(TaskCard).decode


class _Beat(msgspec.Struct, frozen=True, array_like=True):
    state: WorkerState
    started_at: Instant
    beat_at: Instant
    running: int
    settled: int
    failed: int


_read_beat = msgspec.msgpack.Decoder(_Beat).decode


async def read_workers(wire: Wire) -> tuple[Instant, list[WorkerView]]:
    """Give all known workers by id, and the server's instant."""
    now, cards, beats = await wire.run("registry", NAMES["workers"], NAMES["beats"])
    known = dict(zip(beats[::2], map(_read_beat, beats[1::2]), strict=True))
    views = [
        WorkerView(
            card=read_card(card),
            state=known[id].state,
            started_at=known[id].started_at,
            beat_at=known[id].beat_at,
            running=known[id].running,
            settled=known[id].settled,
            failed=known[id].failed,
        )
        for id, card in sorted(zip(cards[::2], cards[1::2], strict=True))
    ]
    return now, views
