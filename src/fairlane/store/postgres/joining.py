"""Run a verb inside the application's own transaction, on its own connection.

Commits nothing and rolls nothing back but the verb itself, by a savepoint. Only appends, and takes no mutex:
a transaction may stay open for as long as it likes, and nobody waits for it but who wants the same key (S13).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from fairlane.model.errors import StoreBusy, StoreError, StoreUnavailable, Unsupported
from fairlane.store.contract.claims import SettleReply, SettleRequest
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest
from fairlane.store.postgres.admitting import Admitting, IdRaceError, RefusedError
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.enqueue import created_of, fast, refuse_foreign
from fairlane.store.postgres.guests import Guest, guest
from fairlane.store.postgres.settling import apply, reply_of
from fairlane.store.postgres.wake import channel_of, letter_of

_NOTIFY: Final = "SELECT pg_notify($1, $2)"

_CONNECTION_CLASSES: Final = frozenset({"08", "57"})


async def enqueue_in(server: Server, connection: Any, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch, or nothing of it, with the commit of the transaction that is open there."""
    refuse_foreign(request)
    own = welcome(server, connection)
    if not request.jobs:
        return EnqueueReply()
    try:
        async with joined(server, own):
            reply = await fast(own, server.schema, server.now(), request)
            if reply is None:
                reply = await Admitting(own, server.schema, server.now(), request).run()
            await tell(server, own, {new.queue for new in created_of(request, reply)})
            return reply
    except RefusedError as refused:
        return refused.reply
    except IdRaceError:
        message = "a job of the same id was committed just now; repeat the call"
        raise StoreBusy(message) from None


async def settle_in(server: Server, connection: Any, request: SettleRequest) -> SettleReply:
    """End attempts with the commit of the transaction that is open there."""
    own = welcome(server, connection)
    async with joined(server, own):
        answer = await apply(own, server.schema, server.now(), request, request.settlements)
        await tell(server, own, answer.hints)
    return reply_of(request, answer.states)


def welcome(server: Server, connection: object) -> Guest:
    """Give the way to use a connection that leads to the store's own database; `Unsupported` if not."""
    own = guest(connection)
    here = unquote(urlsplit(server.location.dsn).path.removeprefix("/"))
    if here and not server.location.is_pooled and own.database not in {None, here}:
        message = (
            f"the connection leads to database {own.database}, but the jobs are in {here}; connect to that "
            "one, or use the outbox in your own"
        )
        raise Unsupported(message)
    return own


@asynccontextmanager
async def joined(server: Server, own: Guest) -> AsyncIterator[None]:
    """Make whatever is done meanwhile one step of the transaction, which goes on whatever becomes of it."""
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


async def tell(server: Server, own: Guest, queues: Iterable[str]) -> None:
    """Let the commit tell waiting workers; the same word said twice in a transaction is told once."""
    for queue in sorted(queues):
        await own.fetch(_NOTIFY, channel_of(server.schema), letter_of([queue]))


async def _undo(own: Guest) -> None:
    try:
        await own.execute("ROLLBACK TO SAVEPOINT fairlane")
        await own.execute("RELEASE SAVEPOINT fairlane")
    except own.errors as error:
        message = "the connection was lost, or its transaction cannot go on: roll it back"
        raise StoreUnavailable(message, retry_safe=False) from error


def _translated(error: Exception, server: Server) -> StoreError:
    """Say in our words what went wrong on an application's connection, after everything was taken back."""
    said = str(error).partition("\n")[0]
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
            return StoreBusy(f"another transaction waits for this one, and this one for it: {said}")
        case "40001":
            message = f"the transaction sees too old a state: roll it back and do it again: {said}"
            return StoreBusy(message, retry_safe=False)
        case "3F000" | "42P01" | "42883" | "42703":
            return Unsupported(
                f"where the connection leads, schema {server.schema} holds no such Fairlane ({said}); "
                "run `fairlane migrate`, or use the outbox in your own database"
            )
        case "42501":
            return StoreError(f"{said}; see `Roles and grants` in the documentation")
        case None:
            return StoreUnavailable(f"the connection does not answer: {said}", retry_safe=False)
        case _ if state[:2] in _CONNECTION_CLASSES:
            return StoreUnavailable(f"the connection does not answer: {said}", retry_safe=False)
        case _:
            return StoreError(f"{said} ({state})")


def sqlstate(error: BaseException | None) -> str | None:
    """Find the server's own code for an error, beneath whatever libraries have wrapped around it."""
    while error is not None:
        for name in ("sqlstate", "pgcode"):
            code = getattr(error, name, None)
            if isinstance(code, str):
                return code
        error = getattr(error, "orig", None) or error.__cause__
    return None
