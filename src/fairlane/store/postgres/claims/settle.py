"""Settle attempts (S30, S35, S36) in one round trip; `reconcile` decides after a cancel or an expiry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import Settlement
from fairlane.model.lifecycle.states import Event, State, target
from fairlane.model.retry.decision import reconcile
from fairlane.store.contract.claims import SettledJob, SettleReply, SettleRequest
from fairlane.store.postgres.columns import ENDS
from fairlane.store.postgres.connection import Server, StatementRunner
from fairlane.store.postgres.rows import WIDTH, attempt_tail, once, plain_uuid, read_record
from fairlane.store.postgres.statements import load

_SUCCEED: Final = Event.SUCCEED  # naming a member looks it up each time, and it hashes slowly
_SUCCEEDED: Final = target(_SUCCEED)
_SUCCEEDED_VALUE: Final = _SUCCEEDED.value
_RETRY: Final = Event.RETRY
_LEARNT: Final = frozenset({"succeeded", "failed"})
"""Outcomes of attempts whose duration tells what the task takes."""


class SettleResult(NamedTuple):
    """What became of settlements: states of settled jobs, those that the model must decide, queues to wake.

    States are by the number of the id: the id itself hashes slowly.
    """

    states: dict[int, State]
    doubtful: list[UUID]
    hints: set[str]


async def settle(server: Server, request: SettleRequest) -> SettleReply:
    """Settle attempts in one round trip, or two where the model must decide about some."""
    first = _first_of_each(request.settlements)
    if not first:
        return SettleReply()
    locked: set[UUID] = set()
    if not request.waits:
        locked = await _locked_elsewhere(server, request)
        first = [one for one in first if one.id not in locked]
    states, doubtful, hints = await apply(server, server.schema, server.now(), request, first)
    if doubtful:
        asked = [one for one in first if one.id in doubtful]
        async with server.transaction() as connection:
            decided = await _reconcile(connection, server, request, asked)
        states |= decided.states
        hints |= decided.hints
    server.hint(hints)
    return reply_of(request, states, locked)


def _first_of_each(settlements: Sequence[Settlement]) -> Sequence[Settlement]:
    """Return the settlements without repeats of the same attempt."""
    if len({one.id.int for one in settlements}) == len(settlements):
        return settlements
    first: dict[tuple[UUID, int], Settlement] = {}
    for one in settlements:
        first.setdefault((one.id, one.fence), one)
    return list(first.values())


async def _locked_elsewhere(server: Server, request: SettleRequest) -> set[UUID]:
    """Return the claims whose rows another open transaction, which settled them, has locked."""
    asked = sorted(request.settlements, key=lambda one: one.id)
    keys = ([one.id for one in asked], [one.fence for one in asked])
    rows = await server.fetch(load("settle", server.schema).locked_elsewhere, *keys, request.worker)
    return {plain_uuid(id) for (id,) in rows}


async def apply(
    runner: StatementRunner,
    schema: str,
    now: Instant | None,
    request: SettleRequest,
    batch: Sequence[Settlement],
    *,
    is_decided: bool = False,
) -> SettleResult:
    """Settle by one statement what matches. `is_decided`: the model has seen the rows."""
    values = _values(batch, request.attempts_kept, is_decided=is_decided)
    rows = await runner.fetch(
        load("settle", schema).settle, now, request.worker, request.scope.tenant, *values
    )
    _, settled, doubtful, hints = rows[0]
    states = {one.id.int: _state(one.event) for one in batch}
    if settled is not None:  # it is None where all of them are
        states = {id.int: states[id.int] for id in settled}
    return SettleResult(states, [plain_uuid(id) for id in doubtful or ()], set(hints or ()))


async def _reconcile(
    runner: StatementRunner, server: Server, request: SettleRequest, asked: list[Settlement]
) -> SettleResult:
    """Lock the rows of these jobs, let the model overrule the settlements by what they say, and settle."""
    asked.sort(key=lambda one: one.id)
    keys = ([one.id for one in asked], [one.fence for one in asked])
    rows = await runner.fetch(load("settle", server.schema).doubtful, server.now(), *keys, request.worker)
    if not rows:
        return SettleResult({}, [], set())
    now: Instant = rows[0][WIDTH]
    by_id = {one.id: one for one in asked}
    decided = [reconcile(job, by_id[job.id], now) for job in map(read_record, rows)]
    return await apply(runner, server.schema, now, request, decided, is_decided=True)


def _values(batch: Sequence[Settlement], kept: int, *, is_decided: bool) -> tuple[list[Any], ...]:
    """Return the columns of settlements in the order of the parameters of `settle`; most have one value."""
    return (
        [one.id for one in batch],
        once([one.fence for one in batch]),
        once([not is_decided and one.event is not _SUCCEED for one in batch]),
        once([None if is_decided or one.event is not _RETRY else one.delay for one in batch]),
        *_ends(batch, kept),
        once([one.spent for one in batch]),
    )


def _compiled_ends() -> Callable[[Sequence[Settlement], int], tuple[list[Any], ...]]:
    """Return a function that gives the columns `ENDS` of settlements; compiled from the list, to be fast."""
    worked_out = {
        "state": "_SUCCEEDED_VALUE if one.event is _SUCCEED else target(one.event).value",
        "tail": "None if one.is_unstarted else attempt_tail(one.outcome, one.failure, one.log)",
        "learns": "one.outcome in _LEARNT",
    }
    columns = ", ".join(
        "[kept]" if name == "kept" else f"once([{worked_out.get(name, f'one.{name}')} for one in batch])"
        for name, *_ in ENDS
    )
    made: Callable[[Sequence[Settlement], int], tuple[list[Any], ...]] = eval(  # noqa: S307 (our own list)
        f"lambda batch, kept: ({columns},)",
        {**globals(), "attempt_tail": attempt_tail},
    )
    return made


_ends: Final = _compiled_ends()


def _state(event: Event) -> State:
    return _SUCCEEDED if event is _SUCCEED else target(event)


def reply_of(request: SettleRequest, states: dict[int, State], locked: Collection[UUID] = ()) -> SettleReply:
    """Return a reply that names each settlement in order, except those whose rows are locked elsewhere."""
    settled, stale = [], []
    for one in request.settlements:
        state = states.pop(one.id.int, None)
        if state is not None:
            settled.append(SettledJob(one.id, state))
        elif one.id not in locked:
            stale.append(one.id)
    return SettleReply(tuple(settled), tuple(stale))
