"""The fault proxy does what it is told, byte by byte, with a server that says everything twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from tests.servers.proxy import Proxy, proxied


@pytest.fixture
async def heard() -> list[bytes]:
    """What the server has got."""
    return []


@pytest.fixture
async def proxy(heard: list[bytes]) -> AsyncIterator[Proxy]:
    """A proxy to a server that answers every line with itself, twice."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1_000):
                heard.append(data)
                writer.write(data * 2)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with proxied(server.sockets[0].getsockname()[1]) as proxy:
        yield proxy
    server.close()


class Client:
    """One connection by the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        """Send, and wait for nothing."""
        self.writer.write(data)

    async def rest(self) -> bytes:
        """Return all that still comes before the line is cut."""
        got = b""
        try:
            while data := await self.reader.read(1_000):
                got += data
        except OSError:
            pass
        self.writer.close()
        return got

    async def ask(self, data: bytes) -> bytes:
        """Send, and return the answer."""
        self.send(data)
        return await self.reader.readexactly(2 * len(data))


Connect: TypeAlias = Callable[[], Awaitable[Client]]


@pytest.fixture
async def connect(proxy: Proxy) -> AsyncIterator[Connect]:
    """Connects by the proxy; what is open afterwards is closed."""
    clients: list[Client] = []

    async def open_line() -> Client:
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", proxy.port)))
        return clients[-1]

    yield open_line
    for client in clients:
        client.writer.close()


@pytest.mark.parametrize(("passing", "answered"), [(0, b""), (3, b"cut"), (100, b"cut me\ncut me\n")])
async def test_a_cut_after_lets_the_message_through_and_so_much_of_the_answer(
    connect: Connect, proxy: Proxy, heard: list[bytes], passing: int, answered: bytes
) -> None:
    """The server has it whole; the client knows nothing, or a part."""
    client = await connect()
    assert await client.ask(b"hello\n") == b"hello\nhello\n"
    proxy.cut_after(b"me", passing)
    client.send(b"cut me\n")
    assert await client.rest() == answered
    assert heard == [b"hello\n", b"cut me\n"]
    assert proxy.cuts_made == 1


@pytest.mark.parametrize(("passing", "delivered"), [(0, []), (3, [b"cut"]), (100, [b"cut m"])])
async def test_a_cut_before_never_gives_the_server_the_whole_pattern(
    connect: Connect, proxy: Proxy, heard: list[bytes], passing: int, delivered: list[bytes]
) -> None:
    """However much of it may pass."""
    client = await connect()
    proxy.cut_before(b"me", passing)
    client.send(b"cut me\n")
    assert await client.rest() in {b"", delivered[0] * 2 if delivered else b""}
    await _until(lambda: heard == delivered)


async def test_a_pattern_that_comes_in_two_parts_is_seen(
    connect: Connect, proxy: Proxy, heard: list[bytes]
) -> None:
    """A message is not cut where a network cuts it."""
    client = await connect()
    proxy.cut_after(b"COMMIT")
    assert await client.ask(b"COM") == b"COMCOM"
    client.send(b"MIT")
    assert await client.rest() == b""
    assert heard == [b"COM", b"MIT"]


@pytest.mark.parametrize(("way", "left"), [("up", b"abcabc"), ("down", b"abc")])
async def test_a_cut_at_a_byte_is_made_behind_that_byte(
    connect: Connect, proxy: Proxy, way: str, left: bytes
) -> None:
    """Counted from then on, each way by itself."""
    client = await connect()
    await client.ask(b"hello\n")
    proxy.cut_at(3, "up" if way == "up" else "down")
    client.send(b"abcdef")
    got = await client.rest()
    assert got == left or (way == "up" and got == b"")  # the answer to a part may come too late
    assert proxy.cuts_made == 1
    other = await connect()
    assert await other.ask(b"x") == b"xx"


async def test_a_frozen_line_is_half_open_and_gives_everything_when_it_thaws(
    connect: Connect, proxy: Proxy, heard: list[bytes]
) -> None:
    """Old lines and new ones: they are taken, nothing is refused, nothing is answered."""
    old = await connect()
    await old.ask(b"1")
    proxy.freeze()
    new = await connect()
    answers = [asyncio.create_task(one.ask(b"2")) for one in (old, new)]
    done, _ = await asyncio.wait(answers, timeout=0.1)
    assert not done
    assert heard == [b"1"]
    proxy.thaw()
    assert [await one for one in answers] == [b"22", b"22"]


async def test_a_delay_and_a_rate_take_their_time(connect: Connect, proxy: Proxy) -> None:
    """Each way; a quarter of a second in all for fifty bytes there and a hundred back."""
    client, loop = await connect(), asyncio.get_running_loop()
    proxy.delay, proxy.rate = 0.05, 1_000
    began = loop.time()
    await client.ask(b"x" * 50)
    assert loop.time() - began >= 0.25


async def test_a_refusing_proxy_resets_and_a_cut_ends_what_is_there(
    connect: Connect, proxy: Proxy, heard: list[bytes]
) -> None:
    """And both are over when they are over."""
    client = await connect()
    await client.ask(b"1")
    proxy.is_refusing = True
    proxy.cut()
    assert await client.rest() == b""
    refused = await connect()
    assert await refused.rest() == b""
    proxy.is_refusing = False
    again = await connect()
    assert await again.ask(b"2") == b"22"
    assert proxy.lines == 1


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 (it is on its way)
            await asyncio.sleep(0.001)
