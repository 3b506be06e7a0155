"""Several commands on their way at once: answers in order, and no answer left for somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from redis import Redis
from redis.asyncio.connection import AbstractConnection, UnixDomainSocketConnection
from redis.exceptions import ReadOnlyError, ResponseError

from fairlane.store.redis.pipeline import Command, pipeline, raise_error, send, send_until_zero
from tests.servers.valkey import ValkeyServer

TIME_LIMIT = 5.0
COUNT_DOWN = "return redis.call('DECR', KEYS[1]) > 0 and 1 or 0"
REFUSE = "return redis.error_reply('READONLY no')"


@pytest.fixture
async def connection(server: ValkeyServer) -> AsyncIterator[AbstractConnection]:
    """Return a connection of its own."""
    opened = UnixDomainSocketConnection(path=str(server.socket), protocol=3)
    await opened.connect()  # type: ignore[no-untyped-call]
    yield opened
    await opened.disconnect()


async def test_a_command_is_repeated_until_it_says_that_it_is_done(
    connection: AbstractConnection, client: Redis
) -> None:
    """And once more, since that one was on its way; then the connection is free for others."""
    client.set("{x}left", 7)
    assert await send_until_zero(connection, ("EVAL", COUNT_DOWN, 1, "{x}left"), TIME_LIMIT) == 0
    assert client.get("{x}left") == b"-1"
    assert await send(connection, ("ECHO", "own"), TIME_LIMIT) == b"own"
    client.delete("{x}left")


async def test_a_script_that_was_flushed_meanwhile_is_sent_in_full_by_whoever_repeats(
    connection: AbstractConnection,
) -> None:
    """One more answer is on its way: the connection ends, and the caller begins again."""
    assert await send_until_zero(connection, ("EVALSHA", "0" * 40, 0), TIME_LIMIT) == 1
    assert not connection.is_connected


async def test_after_a_refused_repetition_nobody_reads_the_answer_of_another(
    connection: AbstractConnection,
) -> None:
    """The connection is ended with what is still on its way."""
    with pytest.raises(ReadOnlyError):
        await send_until_zero(connection, ("EVAL", REFUSE, 0), TIME_LIMIT)
    assert not connection.is_connected


async def test_of_a_stream_no_more_is_on_its_way_than_allowed_and_the_next_is_made(
    connection: AbstractConnection,
) -> None:
    """Each answer is replies in its order, refusals too; the server never waits for a command to be made."""
    replies: list[Any] = []
    open_: list[int] = []

    def commands() -> Iterator[Command]:
        for number in range(7):
            open_.append(number - len(replies))
            yield ("ECHO", str(number)) if number != 3 else ("NO-SUCH",)

    await pipeline(connection, commands(), replies.append, TIME_LIMIT, 2, nullcontext())
    assert open_ == [0, 1, 2, 2, 2, 2, 2]
    assert [one if isinstance(one, bytes) else type(one) for one in replies] == [
        b"0",
        b"1",
        b"2",
        ResponseError,
        b"4",
        b"5",
        b"6",
    ]


async def test_of_a_stream_with_a_refused_command_nobody_reads_an_answer(
    connection: AbstractConnection, client: Redis
) -> None:
    """What came before it is done, and the error is the server's."""
    commands = [("SET", "{x}a", 1), ("NO-SUCH",), ("SET", "{x}b", 1)]
    with pytest.raises(ResponseError, match="unknown command"):
        await pipeline(connection, commands, raise_error, TIME_LIMIT, 3, nullcontext())
    assert not connection.is_connected
    assert client.delete("{x}a") == 1


async def test_what_was_answered_is_replies_though_the_next_command_cannot_be_sent(
    connection: AbstractConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done: an answer that nobody heard of would leave claims to their leases."""
    replies: list[Any] = []
    real, sent = connection.send_packed_command, 0

    async def send_twice(packed: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent > 2:
            raise ConnectionResetError
        await real(packed)

    monkeypatch.setattr(connection, "send_packed_command", send_twice)
    commands = [("ECHO", "a"), ("ECHO", "b"), ("ECHO", "c")]
    with pytest.raises(ConnectionResetError):
        await pipeline(connection, commands, replies.append, TIME_LIMIT, 2, nullcontext())
    assert replies == [b"a"]
    assert not connection.is_connected


async def test_streams_that_share_a_turn_go_one_after_the_other(
    connection: AbstractConnection, server: ValkeyServer
) -> None:
    """The next begins when the last command of the one before is on its way, not when it is answered."""
    other = UnixDomainSocketConnection(path=str(server.socket), protocol=3)
    made: list[str] = []
    replies: list[bytes] = []

    def commands(name: str) -> Iterator[Command]:
        for _ in range(7):
            made.append(name)
            yield "ECHO", name
        if name == "a":
            assert len(replies) == 5  # two are still to be answered

    lock = asyncio.Lock()
    try:
        await asyncio.gather(
            pipeline(connection, commands("a"), replies.append, TIME_LIMIT, 2, lock),
            pipeline(other, commands("b"), replies.append, TIME_LIMIT, 2, lock),
        )
    finally:
        await other.disconnect()
    assert made == ["a"] * 7 + ["b"] * 7
    assert sorted(replies) == [b"a"] * 7 + [b"b"] * 7


async def test_a_stream_that_fails_gives_its_turn_away(connection: AbstractConnection) -> None:
    """Whoever comes next does not wait for it."""
    lock = asyncio.Lock()
    with pytest.raises(ResponseError):
        await pipeline(connection, [("NO-SUCH",), ("ECHO", "a")], raise_error, TIME_LIMIT, 1, lock)
    assert not lock.locked()
