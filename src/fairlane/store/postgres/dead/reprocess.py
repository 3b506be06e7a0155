"""Run dead letters again: a new job for each, noted in the letter, in one step (S53, S75).

Letters are locked in the order of their ids, and only then keys are taken, as every enqueue takes them: so
two callers wait for each other's letters, or for each other's keys, but never in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.journal import facts
from fairlane.model.lifecycle.admission import Admission, Admitted, Refusal, RefusalKind, Repeat
from fairlane.model.review import may_follow, reprocessed
from fairlane.store.audit_entries import reprocess_entries
from fairlane.store.contract.dead import DeadLetter, Reprocessing, ReprocessReply, ReprocessRequest
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.dead.letters import locked_letters, write_reviews
from fairlane.store.postgres.jobs.admission import BatchAdmission, IdRaceError
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load

_MAX_RACES: Final = 5


class _Item(NamedTuple):
    """One item, and which one of the request it is, from 0."""

    number: int
    asked: Reprocessing


async def reprocess(server: Server, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
    """Run letters again, all in one transaction; a letter that is asked for twice needs a second one."""
    replies: dict[int, ReprocessReply] = {}
    left = [_Item(number, asked) for number, asked in enumerate(request.items)]
    while left:
        first = {item.asked.id: item for item in reversed(left)}
        replies |= await _reprocess_once(server, request, sorted(first.values(), key=_number))
        left = [item for item in left if item.number not in replies]
    in_order = tuple(replies[number] for number in range(len(request.items)))
    server.hint(
        item.job.queue
        for item, reply in zip(request.items, in_order, strict=True)
        if reply.answer == "reprocessed"
    )
    return in_order


def _number(item: _Item) -> int:
    return item.number


async def _reprocess_once(
    server: Server, request: ReprocessRequest, items: Sequence[_Item]
) -> dict[int, ReprocessReply]:
    for _ in range(_MAX_RACES):
        try:
            async with server.transaction() as connection:
                return await _in_transaction(server, connection, request, items)
        except IdRaceError:
            continue
    message = "others keep enqueueing the same ids"
    raise StoreBusy(message)


async def _in_transaction(
    server: Server, connection: Connection, request: ReprocessRequest, items: Sequence[_Item]
) -> dict[int, ReprocessReply]:
    """Lock letters, admit their new jobs, and write both; each letter is asked for once."""
    letters = await locked_letters(connection, server.schema, request, (item.asked.id for item in items))
    now: Instant = await connection.fetchval(load("dead", server.schema).now, server.now())
    replies: dict[int, ReprocessReply] = {}
    fit: list[_Item] = []
    for item in items:
        unfit = _unfit(letters.get(item.asked.id), item.asked)
        if unfit is None:
            fit.append(item)
        else:
            replies[item.number] = unfit
    done = []
    for item, admission in zip(fit, await _admit(server, connection, now, request, fit), strict=True):
        refusal = _refusal(item, admission)
        if refusal is None:
            done.append(item.asked)
            replies[item.number] = ReprocessReply(
                item.asked.id, "reprocessed", item.asked.job.id, "reprocessed"
            )
        else:
            review = letters[item.asked.id].review.review
            replies[item.number] = ReprocessReply(item.asked.id, "refused", review=review, refusal=refusal)
    await _write(server, connection, now, request, [(letters[one.id], one.job.id) for one in done])
    return replies


def _unfit(letter: DeadLetter | None, asked: Reprocessing) -> ReprocessReply | None:
    """Return why a letter may not be run again, whatever its new job is; None if it may."""
    if letter is None or letter.job.tenant != asked.job.tenant:
        return ReprocessReply(asked.id, "not_found")
    record = letter.review
    if letter.job.checksum != asked.checksum:
        return ReprocessReply(asked.id, "changed", review=record.review)
    if record.review == "reprocessed" and record.new_run is not None:
        return ReprocessReply(asked.id, "already", record.new_run.job, record.review)
    if not may_follow(record, "reprocess"):
        return ReprocessReply(asked.id, "not_allowed", review=record.review)
    return None


async def _admit(
    server: Server, connection: Connection, now: Instant, request: ReprocessRequest, items: Sequence[_Item]
) -> Sequence[Admission]:
    """Enqueue the new jobs that are admitted; waiting limits do not count."""
    if not items:
        return ()
    batch = EnqueueRequest(scope=request.scope, jobs=tuple(item.asked.job for item in items))
    return await BatchAdmission(connection, server.schema, now, batch, is_limited=False).run_each()


def _refusal(item: _Item, admission: Admission) -> Refusal | None:
    """Return why a new job was not made: another one that answers for its key is a reason, too."""
    match admission:
        case Refusal():
            return msgspec.structs.replace(admission, index=item.number)
        case Repeat():
            job = item.asked.job
            return Refusal(
                item.number, RefusalKind.DUPLICATE, job.tenant, job.queue, existing=admission.existing
            )
        case Admitted():
            return None


async def _write(
    server: Server,
    connection: Connection,
    now: Instant,
    request: ReprocessRequest,
    done: Sequence[tuple[DeadLetter, UUID]],
) -> None:
    """Note the new jobs in their letters, and tell."""
    reviews = {
        letter.job.id: reprocessed(letter.review, new, request.who, request.note, now) for letter, new in done
    }
    await write_reviews(connection, server.schema, reviews)
    events = [facts.reprocess_requested(letter.job, letter.fingerprint, new) for letter, new in done]
    await append_entries(connection, server.schema, now, "events", events)
    audit = [
        entry
        for letter, new in done
        for entry in reprocess_entries(request.operation, letter.job.id, letter.job.tenant, new)
    ]
    await append_entries(connection, server.schema, now, "audit", audit)
