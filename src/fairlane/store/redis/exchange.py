"""Send commands over one connection and read what is answered. Knows no script, no pool, no other server.

Whatever goes wrong while more than one answer is on its way ends the connection: nobody else may read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlane.model.errors import EnqueueUnknown

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

Command: TypeAlias = tuple[Any, ...]


def nothing() -> None:
    """Have nothing to do meanwhile."""


async def send(
    connection: AbstractConnection,
    command: Command,
    patience: float,
    meanwhile: Callable[[], None] = nothing,
) -> Any:
    """Send a command, do something meanwhile, give the answer."""
    # The time limit is ours. The library's own for sending (`asyncio.wait_for`) loses a cancellation on
    # Python 3.11; its own for reading answers None and keeps the connection, on which the answer comes.
    async with asyncio.timeout(patience):
        await connection.send_packed_command(_packed(command))
        meanwhile()
        return await connection.read_response()


async def repeat(connection: AbstractConnection, command: Command, patience: float) -> Any:
    """Send a command until the server answers 0; give 1 if it must be sent otherwise before it can go on.

    Each goes out before the answer to the one before is read, so that the server need not wait for us. No
    more than these two are on their way: a server does all that it finds of one client before it turns to
    another.
    """
    from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

    packed = _packed(command)
    answer: Any = 1
    try:
        await connection.send_packed_command(packed)
        while answer:
            async with asyncio.timeout(patience):
                await connection.send_packed_command(packed)
                answer = await connection.read_response()
        async with asyncio.timeout(patience):
            return await connection.read_response()
    except exceptions.NoScriptError:
        await connection.disconnect(nowait=True)
        return 1
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


async def converse(
    connection: AbstractConnection,
    commands: Iterable[Command],
    heed: Callable[[Any], None],
    patience: float,
    ahead: int,
    turn: AbstractAsyncContextManager[None],
) -> None:
    """Send commands and heed the answer to each, or the error that it was refused with, in their order.

    No more than `ahead` are on their way, for the reason that `repeat` has. An answer is heeded when the
    command that takes its place is sent, and that was made before: the server waits for neither. Nothing is
    sent before it is our `turn`, which is over as soon as the last one is on its way.
    """
    from redis import exceptions  # noqa: PLC0415

    async def read() -> Any:
        async with asyncio.timeout(patience):
            try:
                return await connection.read_response()
            except exceptions.ResponseError as error:
                return error

    async def put(packed: bytes) -> None:
        async with asyncio.timeout(patience):
            await connection.send_packed_command(packed)

    waiting = 0
    try:
        async with turn:
            for command in commands:
                packed = _packed(command)
                if waiting < ahead:
                    await put(packed)
                    waiting += 1
                else:
                    answer = await read()
                    try:
                        await put(packed)
                    finally:
                        heed(answer)  # what was answered is done, though the connection ends now
        for _ in range(waiting):
            heed(await read())
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


def demand(answer: Any) -> None:
    """Accept no refusal."""
    if isinstance(answer, Exception):
        raise answer


async def await_replicas(connection: AbstractConnection, replicas: int, patience: float) -> None:
    """Wait until so many replicas have what this connection has written."""
    if not replicas:
        return
    reached = await send(connection, ("WAIT", replicas, int(patience * 1_000)), 2 * patience)
    if reached < replicas:
        message = (
            f"the job is stored, but {reached} of {replicas} replicas have it; repeat under the same ids"
        )
        raise EnqueueUnknown(message)


def _packed(command: Command) -> bytes:
    # For asyncio the library packs in Python: 1 µs for each argument, this 0.1.
    from hiredis import pack_command  # noqa: PLC0415

    packed: bytes = pack_command(command)
    return packed
