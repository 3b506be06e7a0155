"""Enqueue and settle inside the application's own transaction, on its own connection.

Commits nothing, and rolls back nothing but the verb itself, by a savepoint. Only appends, and takes no
queue lock: the transaction may stay open for long, and only those who want the same key wait for it (S13).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from fairlane.model.errors import StoreBusy, StoreError, StoreUnavailable, Unsupported
from fairlane.store.contract.claims import SettleReply, SettleRequest
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest, check_tenants
from fairlane.store.postgres.app_connections import AppConnection, app_connection
from fairlane.store.postgres.claims.settle import apply, reply_of
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.admission import BatchAdmission, BatchRefusedError, IdRaceError
from fairlane.store.postgres.jobs.enqueue import created_jobs, enqueue_unrestricted
from fairlane.store.postgres.wake import channel_of, encode_hint

_NOTIFY: Final = "SELECT pg_notify($1, $2)"

_CONNECTION_CLASSES: Final = frozenset({"08", "57"})


async def enqueue_in(server: Server, connection: Any, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch, or nothing of it, when the open transaction commits."""
    check_tenants(request)
    own = checked_connection(server, connection)
    if not request.jobs:
        return EnqueueReply()
    try:
        async with savepoint(server, own):
            reply = await enqueue_unrestricted(own, server.schema, server.now(), request)
            if reply is None:
                reply = await BatchAdmission(own, server.schema, server.now(), request).run()
            await notify_on_commit(server, own, {new.queue for new in created_jobs(request, reply)})
            return reply
    except BatchRefusedError as refused:
        return refused.reply
    except IdRaceError:
        message = "a job of the same id was committed just now; repeat the call"
        raise StoreBusy(message) from None


async def settle_in(server: Server, connection: Any, request: SettleRequest) -> SettleReply:
    """Settle attempts when the open transaction commits."""
    own = checked_connection(server, connection)
    async with savepoint(server, own):
        answer = await apply(own, server.schema, server.now(), request, request.settlements)
        await notify_on_commit(server, own, answer.hints)
    return reply_of(request, answer.states)


def checked_connection(server: Server, connection: object) -> AppConnection:
    """Return a connection ready for use; `Unsupported` if it is known to lead to another database."""
    own = app_connection(connection)
    here = unquote(urlsplit(server.location.dsn).path.removeprefix("/"))
    if here and not server.location.is_pooled and own.database not in {None, here}:
        message = (
            f"the connection leads to database {own.database}, but the jobs are in {here}; connect to that "
            "one, or use the outbox in your own"
        )
        raise Unsupported(message)
    return own


@asynccontextmanager
async def savepoint(server: Server, own: AppConnection) -> AsyncIterator[None]:
    """Run a block in a savepoint: the transaction can go on even if the block fails."""
    try:
        await own.execute("SAVEPOINT fairlane")
    except own.errors as error:
        raise _translated(error, server) from error
    try:
        yield
        await own.execute("RELEASE SAVEPOINT fairlane")
    except own.errors as error:
        await _undo(own)
        raise _translated(error, server) from error
    except BaseException:
        await _undo(own)
        raise


async def notify_on_commit(server: Server, own: AppConnection, queues: Iterable[str]) -> None:
    """Let the commit wake waiting workers; a NOTIFY that is repeated within a transaction is sent once."""
    for queue in sorted(queues):
        await own.fetch(_NOTIFY, channel_of(server.schema), encode_hint([queue]))


async def _undo(own: AppConnection) -> None:
    try:
        await own.execute("ROLLBACK TO SAVEPOINT fairlane")
        await own.execute("RELEASE SAVEPOINT fairlane")
    except own.errors as error:
        message = "the connection was lost, or its transaction cannot go on: roll it back"
        raise StoreUnavailable(message, retry_safe=False) from error


def _translated(error: Exception, server: Server) -> StoreError:
    """Return our error for one on the application's connection; the verb has been rolled back."""
    driver_text = str(error).partition("\n")[0]
    state = sqlstate(error)
    match state:
        case "25P01":
            return StoreError(
                "the connection has no open transaction, so nothing could be committed with the job; begin "
                "one first, or do it without a connection"
            )
        case "25P02":
            return StoreError("the transaction has failed before and takes nothing more: roll it back")
        case "55P03":
            return StoreBusy("the same key is in a transaction that is still open; try again")
        case "40P01":
            return StoreBusy(f"another transaction waits for this one, and this one for it: {driver_text}")
        case "40001":
            message = f"the transaction sees too old a state: roll it back and do it again: {driver_text}"
            return StoreBusy(message, retry_safe=False)
        case "3F000" | "42P01" | "42883" | "42703":
            return Unsupported(
                f"where the connection leads, schema {server.schema} holds no such Fairlane ({driver_text}); "
                "run `fairlane migrate`, or use the outbox in your own database"
            )
        case "42501":
            return StoreError(f"{driver_text}; see `Roles and grants` in the documentation")
        case None:
            return StoreUnavailable(f"the connection does not answer: {driver_text}", retry_safe=False)
        case _ if state[:2] in _CONNECTION_CLASSES:
            return StoreUnavailable(f"the connection does not answer: {driver_text}", retry_safe=False)
        case _:
            return StoreError(f"{driver_text} ({state})")


def sqlstate(error: BaseException | None) -> str | None:
    """Return the server's own code for an error, from beneath what libraries have wrapped around it."""
    while error is not None:
        for name in ("sqlstate", "pgcode"):
            code = getattr(error, name, None)
            if isinstance(code, str):
                return code
        error = getattr(error, "orig", None) or error.__cause__
    return None
