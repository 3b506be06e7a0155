"""Settle attempts: one round trip for what needs no second thought, `heed` for the rest (S30, S35, S36)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import Settlement
from fairlane.model.judge import heed
from fairlane.model.lifecycle import Event, State, target
from fairlane.store.contract.claims import Settled, SettleReply, SettleRequest
from fairlane.store.postgres.admitting import Link
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.rows import attempt_tail, hot_record, once, plain_uuid
from fairlane.store.postgres.statements import load

_SUCCEED: Final = Event.SUCCEED  # a member is looked up anew each time it is named, and hashes slowly
_SUCCEEDED: Final = target(_SUCCEED)
_SUCCEEDED_WORD: Final = _SUCCEEDED.value
_RETRY: Final = Event.RETRY
_LEARNT: Final = frozenset({"succeeded", "failed"})
"""How an attempt must end for its duration to say what the task takes."""


class Answer(NamedTuple):
    """What became of settlements: whose job is in which state, who needs a second thought, whom to tell.

    Jobs are named by the number of their id: the id itself hashes slowly.
    """

    states: dict[int, State]
    doubtful: list[UUID]
    hints: set[str]


async def settle(server: Server, request: SettleRequest) -> SettleReply:
    """End attempts; claiming is a step of its own (S35)."""
    first = _first_of_each(request.settlements)
    if not first:
        return SettleReply()
    held: set[UUID] = set()
    if not request.waits:
        held = await _held_elsewhere(server, request)
        first = [one for one in first if one.id not in held]
    states, doubtful, hints = await apply(server, server.schema, server.now(), request, first)
    if doubtful:
        asked = [one for one in first if one.id in doubtful]
        async with server.transaction() as link:
            heeded = await _heed(link, server, request, asked)
        states |= heeded.states
        hints |= heeded.hints
    server.hint(hints)
    return reply_of(request, states, held)


def _first_of_each(settlements: Sequence[Settlement]) -> Sequence[Settlement]:
    """Leave out what is said twice of the same attempt."""
    if len({one.id.int for one in settlements}) == len(settlements):
        return settlements
    first: dict[tuple[UUID, int], Settlement] = {}
    for one in settlements:
        first.setdefault((one.id, one.fence), one)
    return list(first.values())


async def _held_elsewhere(server: Server, request: SettleRequest) -> set[UUID]:
    """Name the claims whose rows another transaction has locked: one that settled them and is still open."""
    asked = sorted(request.settlements, key=lambda one: one.id)
    keys = ([one.id for one in asked], [one.fence for one in asked])
    rows = await server.fetch(load("settle", server.schema).held_elsewhere, *keys, request.worker)
    return {plain_uuid(id) for (id,) in rows}


async def apply(
    link: Link,
    schema: str,
    now: Instant | None,
    request: SettleRequest,
    batch: Sequence[Settlement],
    *,
    is_heeded: bool = False,
) -> Answer:
    """Settle by one statement what matches and needs no second thought."""
    values = _values(batch, is_heeded=is_heeded)
    rows = await link.fetch(load("settle", schema).settle, now, request.worker, request.scope.tenant, *values)
    _, settled, doubtful, hints = rows[0]
    states = {one.id.int: _state(one.event) for one in batch}
    if settled is not None:  # it is where all of them are
        states = {id.int: states[id.int] for id in settled}
    return Answer(states, [plain_uuid(id) for id in doubtful or ()], set(hints or ()))


async def _heed(link: Link, server: Server, request: SettleRequest, asked: list[Settlement]) -> Answer:
    """Let the model overrule settlements by what their rows say, while these are locked."""
    asked.sort(key=lambda one: one.id)
    keys = ([one.id for one in asked], [one.fence for one in asked])
    rows = await link.fetch(load("settle", server.schema).doubtful, server.now(), *keys, request.worker)
    if not rows:
        return Answer({}, [], set())
    by_id = {one.id: one for one in asked}
    heeded = [heed(job, by_id[job.id], rows[0][0]) for job in (hot_record(row[1:]) for row in rows)]
    return await apply(link, server.schema, rows[0][0], request, heeded, is_heeded=True)


def _values(batch: Sequence[Settlement], *, is_heeded: bool) -> tuple[list[Any], ...]:
    """Give the columns of settlements, in the order in which `settle` takes them: most have one value."""
    columns: tuple[list[Any], ...] = (
        [not is_heeded and one.event is not _SUCCEED for one in batch],
        [None if is_heeded or one.event is not _RETRY else one.delay for one in batch],
        [_SUCCEEDED_WORD if one.event is _SUCCEED else target(one.event).value for one in batch],
        [one.because for one in batch],
        [one.delay for one in batch],
        [one.failures for one in batch],
        [one.crashes for one in batch],
        [one.crashes_alone for one in batch],
        [one.snoozes for one in batch],
        [one.is_suspect for one in batch],
        [attempt_tail(one.outcome, one.failure, one.log) for one in batch],
        [one.outcome in _LEARNT for one in batch],
        [one.result for one in batch],
    )
    return ([one.id for one in batch], once([one.fence for one in batch]), *map(once, columns))


def _state(event: Event) -> State:
    return _SUCCEEDED if event is _SUCCEED else target(event)


def reply_of(request: SettleRequest, states: dict[int, State], held: Collection[UUID] = ()) -> SettleReply:
    """Answer for each settlement in order; one that is held elsewhere is not named."""
    settled, stale = [], []
    for one in request.settlements:
        state = states.pop(one.id.int, None)
        if state is not None:
            settled.append(Settled(one.id, state))
        elif one.id not in held:
            stale.append(one.id)
    return SettleReply(tuple(settled), tuple(stale))
