"""Send commands over one connection and read the replies. Knows no script, no pool, no other server.

An error while more than one reply is outstanding ends the connection: nobody else may read those replies.
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
    """Do nothing while a reply is awaited."""


async def send(
    connection: AbstractConnection,
    command: Command,
    time_limit: float,
    while_waiting: Callable[[], None] = nothing,
) -> Any:
    """Send a command, call `while_waiting`, return the reply."""
    # The timeout is ours. The library's own for sending (`asyncio.wait_for`) loses a cancellation on Python
    # 3.11; its own for reading returns None and keeps the connection, on which the reply then arrives.
    async with asyncio.timeout(time_limit):
        await connection.send_packed_command(_packed(command))
        while_waiting()
        return await connection.read_response()


async def send_until_zero(connection: AbstractConnection, command: Command, time_limit: float) -> Any:
    """Send a command again and again until the server replies 0; return 1 if the server lost the script.

    Each command is sent before the reply to the one before is read, so that the server need not wait for us.
    No more than two are in flight: a server serves all that it has of one client before it turns to another.
    """
    from redis import exceptions  # noqa: PLC0415 (the library is imported when a URL needs it)

    packed = _packed(command)
    reply: Any = 1
    try:
        await connection.send_packed_command(packed)
        while reply:
            async with asyncio.timeout(time_limit):
                await connection.send_packed_command(packed)
                reply = await connection.read_response()
        async with asyncio.timeout(time_limit):
            return await connection.read_response()
    except exceptions.NoScriptError:
        await connection.disconnect(nowait=True)
        return 1
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


async def pipeline(
    connection: AbstractConnection,
    commands: Iterable[Command],
    on_reply: Callable[[Any], None],
    time_limit: float,
    in_flight: int,
    lock: AbstractAsyncContextManager[None],
) -> None:
    """Send commands; pass each reply, or the error that refused it, to `on_reply` in order.

    No more than `in_flight` commands are outstanding, for the reason that `send_until_zero` has. The next
    command is packed before a reply is read, and sent before that reply is handled: the server waits for
    neither. Nothing is sent before the `lock` is held, which is released when the last command is sent.
    """
    from redis import exceptions  # noqa: PLC0415

    async def read() -> Any:
        async with asyncio.timeout(time_limit):
            try:
                return await connection.read_response()
            except exceptions.ResponseError as error:
                return error

    async def write(packed: bytes) -> None:
        async with asyncio.timeout(time_limit):
            await connection.send_packed_command(packed)

    outstanding = 0
    try:
        async with lock:
            for command in commands:
                packed = _packed(command)
                if outstanding < in_flight:
                    await write(packed)
                    outstanding += 1
                else:
                    reply = await read()
                    try:
                        await write(packed)
                    finally:
                        on_reply(reply)  # it is done, even if the connection ends now
        for _ in range(outstanding):
            on_reply(await read())
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


def raise_error(reply: Any) -> None:
    """Raise a reply that is an error."""
    if isinstance(reply, Exception):
        raise reply


async def await_replicas(connection: AbstractConnection, replicas: int, time_limit: float) -> None:
    """Wait until this many replicas have what this connection has written."""
    if not replicas:
        return
    reached = await send(connection, ("WAIT", replicas, int(time_limit * 1_000)), 2 * time_limit)
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
