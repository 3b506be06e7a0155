"""The jobs facet: put in, looked at, changed while they wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.model.errors import EnqueueUnknown, TenantMismatch
from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.layers import Kind, Subject
from fairlane.model.lifecycle import (
    TRANSITIONS,
    WAITING,
    Because,
    CancelReply,
    Event,
    State,
    because,
)
from fairlane.model.moves import hurried, stopped
from fairlane.model.priority import sort_key
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ClaimRequest, Wish
from fairlane.store.contract.jobs import (
    CountPage,
    CountRequest,
    EditReply,
    EditRequest,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindReply,
    FindRequest,
    GetRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyPage,
    TallyRequest,
    Why,
    check_edit,
)
from fairlane.store.contract.reading import explain_by_state
from fairlane.store.contract.registry import LIVE_WITHIN
from fairlane.store.contract.request import CountPlace, Request, check_page, from_cursor
from fairlane.store.sqlite.asking import one_value
from fairlane.store.sqlite.blocks import queue_block, strand_block, turn_block
from fairlane.store.sqlite.cards import read_card
from fairlane.store.sqlite.counting import count
from fairlane.store.sqlite.enqueue import enqueue
from fairlane.store.sqlite.finding import find
from fairlane.store.sqlite.handout import Handout
from fairlane.store.sqlite.homes import Held, find_any, find_live, move, rewrite_body
from fairlane.store.sqlite.joining import Joining
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tallying import tally
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.writer import Reader, Writer

_FIND = load("find")


class SqliteJobs:
    """Jobs as callers and operators see them."""

    def __init__(self, writer: Writer, reader: Reader, joining: Joining) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._joining = joining

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """See the contract."""
        _refuse_foreign(request)
        if not request.jobs:
            return EnqueueReply()
        return await self._writer.run(lambda tx: enqueue(tx, request), EnqueueUnknown)

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        """See the contract."""
        _refuse_foreign(request)
        return self._joining.run(connection, lambda tx: enqueue(tx, request))

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        """See the contract."""
        found = await self._reader.run(lambda tx: find_any(tx, request.ids))
        return {id: job for id, job in found.items() if request.scope.covers(job.tenant)}

    async def find(self, request: FindRequest) -> FindReply:
        """See the contract."""
        return await self._reader.run(lambda tx: find(tx, request))

    async def count(self, request: CountRequest) -> CountPage:
        """See the contract."""
        check_page(request.limit)
        start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
        return await self._reader.run(lambda tx: count(tx, request, start))

    async def tally(self, request: TallyRequest) -> TallyPage:
        """See the contract."""
        return await self._reader.run(lambda tx: tally(tx, request))

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        """See the contract."""
        check_page(request.most)
        return await self._writer.run(lambda tx: _peek(tx, request))

    async def explain(self, request: ExplainRequest) -> Why | None:
        """See the contract."""
        return await self._reader.run(lambda tx: _explain(tx, request))

    async def edit(self, request: EditRequest) -> EditReply:
        """See the contract."""
        check_edit(request)
        return await self._writer.run(lambda tx: _edit(tx, request))

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        """See the contract."""
        return await self._writer.run(lambda tx: _cancel(tx, request))

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        """See the contract."""
        word = because(Because.CONDEMNED, request.reason)

        def condemned(tx: Tx, job: JobRecord) -> JobRecord:
            return stopped(job, State.DEAD, word, tx.now)

        return await self._writer.run(
            lambda tx: _move_each(tx, request, request.ids, Event.CONDEMN, condemned)
        )

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        """See the contract."""

        def due(tx: Tx, job: JobRecord) -> JobRecord:
            tx.hint(job.queue)
            return hurried(job, tx.now)

        return await self._writer.run(lambda tx: _move_each(tx, request, request.ids, Event.RUN_NOW, due))


# ── looking ───────────────────────────────────────────────────────────────────


def _refuse_foreign(request: EnqueueRequest) -> None:
    for job in request.jobs:
        if not request.scope.covers(job.tenant):
            raise TenantMismatch(job.tenant, str(request.scope.tenant))


def _peek(tx: Tx, request: PeekRequest) -> tuple[JobRecord, ...]:
    """Claim for nobody, as often as one claim's bounds demand, and take it back."""
    tx.mark()
    ids: list[UUID] = []
    is_partial = True
    while is_partial and len(ids) < request.most:
        left = request.most - len(ids)
        wishes = (Wish(request.queue, left),)
        claim = ClaimRequest(scope=Scope.all(), worker="", lease=SECOND, wishes=wishes, total=left)
        handout = Handout(tx, claim, only=request.scope.tenant)
        ids += [one.job.id for one in handout.run()]
        is_partial = handout.is_partial
        tx.flush()
    tx.undo()
    found = find_any(tx, ids)
    return tuple(found[id] for id in ids)


def _explain(tx: Tx, request: ExplainRequest) -> Why | None:
    job = find_any(tx, (request.id,)).get(request.id)
    if job is None or not request.scope.covers(job.tenant):
        return None
    return explain_by_state(job) or _explain_ready(tx, job)


def _explain_ready(tx: Tx, job: JobRecord) -> Why:
    turn = tx.turns.turn(job.queue, job.tenant)
    ahead = one_value(tx.db, _FIND.ahead, (turn.id, job.sort_key, job.id.bytes))
    subjects = (
        Subject(Kind.QUEUE, job.queue),
        Subject(Kind.TENANT, job.tenant),
        Subject(Kind.TASK, job.task),
    )
    for subject in subjects:
        pause = tx.rules.paused(subject, tx.now)
        if pause is not None:
            return Why("paused", str(subject), pause.until, ahead)
    blocks: tuple[Callable[[], object], ...] = (
        lambda: queue_block(tx, job.queue),
        lambda: turn_block(tx, turn),
        lambda: strand_block(tx, job.task),
    )
    for look in blocks:
        block = look()
        if block is not None:
            return Why(block.reason, str(block.subject), block.until, ahead)  # type: ignore[attr-defined]
    live = tx.db.execute(_FIND.served, (tx.now - LIVE_WITHIN,))
    is_served = any(job.queue in read_card(card).queues for (card,) in live)
    return Why("turn" if is_served else "no_worker", str(subjects[0]), None, ahead)


# ── changing ──────────────────────────────────────────────────────────────────


def _one(tx: Tx, request: Request, id: UUID) -> Held | None:
    held = find_live(tx, id)
    return held if held is not None and request.scope.covers(held.job.tenant) else None


def _edit(tx: Tx, request: EditRequest) -> EditReply:
    held = _one(tx, request, request.id)
    if held is None:
        finished = find_any(tx, (request.id,)).get(request.id)
        is_known = finished is not None and request.scope.covers(finished.tenant)
        return EditReply("not_waiting" if is_known else "not_found")
    job = held.job
    if job.state not in WAITING:
        return EditReply("not_waiting")
    if request.run_at is not UNSET and job.state is not State.DELAYED:
        return EditReply("not_delayed")
    names = ("priority", "run_at", "expires_at", "tags", "payload", "checksum", "version")
    given = {name: getattr(request, name) for name in names}
    changed = msgspec.structs.replace(job, **{name: v for name, v in given.items() if v is not UNSET})
    if request.run_at is not UNSET and changed.run_at <= tx.now:
        changed = hurried(changed, tx.now)
    changed = msgspec.structs.replace(changed, sort_key=sort_key(changed.run_at, changed.priority))
    move(tx, held, changed)
    rewrite_body(tx, held.seq, changed)
    tx.hint(job.queue)
    return EditReply("edited", changed)


def _cancel(tx: Tx, request: StopRequest) -> dict[UUID, CancelReply]:
    word = because(Because.ASKED, request.reason)
    replies: dict[UUID, CancelReply] = {}
    for id in request.ids:
        tx.flush()
        held = _one(tx, request, id)
        if held is None:
            finished = find_any(tx, (id,)).get(id)
            if finished is not None and request.scope.covers(finished.tenant):
                replies.setdefault(id, CancelReply.FINISHED)
            continue
        if (held.job.state, Event.CANCEL) in TRANSITIONS:
            move(tx, held, stopped(held.job, State.CANCELLED, word, tx.now))
            replies[id] = CancelReply.CANCELLED
        else:
            ask_to_stop(tx, held, word)
            replies[id] = CancelReply.REQUESTED
    return replies


def ask_to_stop(tx: Tx, held: Held, word: str) -> None:
    """Set a running job's flag and tell its worker; the first reason stays."""
    if not held.job.is_cancel_asked:
        move(tx, held, msgspec.structs.replace(held.job, is_cancel_asked=True, because=word))
    tx.hint_worker(str(held.job.worker))


def _move_each(
    tx: Tx,
    request: Request,
    ids: tuple[UUID, ...],
    event: Event,
    becomes: Callable[[Tx, JobRecord], JobRecord],
) -> tuple[UUID, ...]:
    moved = []
    for id in dict.fromkeys(ids):
        held = _one(tx, request, id)
        if held is not None and (held.job.state, event) in TRANSITIONS:
            move(tx, held, becomes(tx, held.job))
            moved.append(id)
    return tuple(moved)
