"""A network between a client and a server that can be broken: a proxy that cuts, stalls, slows and refuses.

Lives in the loop of the test. Understands no protocol: it looks for bytes, not for messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal, NamedTuple, TypeAlias

_CHUNK: Final = 65_536

Way: TypeAlias = Literal["up", "down"]
"""From the client to the server, or back."""
_End: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Cut(NamedTuple):
    """Cut a connection whose client sends these bytes: before the server has them all, or when it answers."""

    pattern: bytes
    is_delivered: bool
    passing: int


class Proxy:
    """One listening port that leads to one server.

    `is_refusing`, `delay` (seconds that each bit of traffic takes) and `rate` (bytes a second of each
    connection, each way) may be set at any time.
    """

    def __init__(self, host: str, port: int) -> None:
        """Know where it leads."""
        self.is_refusing = False
        self.delay = 0.0
        self.rate: float | None = None
        self.port = 0
        self.cuts_made = 0
        self._target = (host, port)
        self._open = asyncio.Event()
        self._open.set()
        self._lines: set[_Line] = set()
        self._planned: list[_Cut] = []
        self._bytes_left: dict[Way, int] = {}

    @property
    def lines(self) -> int:
        """How many connections there are."""
        return len(self._lines)

    def cut(self) -> None:
        """Reset every connection now."""
        for line in list(self._lines):
            line.abort()

    def freeze(self) -> None:
        """Let no byte through and tell nobody: lines are half open, new ones are taken and never answered."""
        self._open.clear()

    def thaw(self) -> None:
        """Let everything through again, also what was held back."""
        self._open.set()

    def cut_after(self, pattern: bytes, passing: int = 0) -> None:
        """Let the next message with these bytes through, and cut when the server has answered it.

        So many bytes of the answer still get to the client.
        """
        self._planned.append(_Cut(pattern, is_delivered=True, passing=passing))

    def cut_before(self, pattern: bytes, passing: int = 0) -> None:
        """Cut the connection whose client sends these bytes next; the server never gets them.

        It gets so many bytes of what comes with them, but never the last byte of the pattern.
        """
        self._planned.append(_Cut(pattern, is_delivered=False, passing=passing))

    def cut_at(self, byte: int, way: Way) -> None:
        """Cut the connection that carries this byte from now on, the first being 1; it still gets through."""
        self._bytes_left[way] = byte

    def planned(self, data: bytes) -> _Cut | None:
        """Take the plan that these bytes fulfil, if there is one."""
        for cut in self._planned:
            if cut.pattern in data:
                self._planned.remove(cut)
                self.cuts_made += 1
                return cut
        return None

    def passes(self, way: Way, size: int) -> int | None:
        """Say after how many of these bytes the connection is to be cut; None if it is not."""
        left = self._bytes_left.get(way)
        if left is None:
            return None
        if size < left:
            self._bytes_left[way] = left - size
            return None
        del self._bytes_left[way]
        self.cuts_made += 1
        return left

    async def pause(self, size: int = 0) -> None:
        """Wait as long as some bytes take."""
        await self._open.wait()
        seconds = self.delay + (size / self.rate if self.rate else 0)
        if seconds:
            await asyncio.sleep(seconds)
            await self._open.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the bytes of one connection until it ends."""
        if self.is_refusing:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        line = _Line(self, (reader, writer), there)
        self._lines.add(line)
        try:
            await line.carry()
        finally:
            self._lines.discard(line)
            line.abort()


class _Line:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: _End, server: _End) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._passing: int | None = None  # of the answer, if it is doomed
        self._tail = b""

    def abort(self) -> None:
        """Reset both sides."""
        self._client[1].transport.abort()
        self._server[1].transport.abort()

    async def carry(self) -> None:
        """Carry bytes both ways until either side ends."""
        with suppress(OSError, asyncio.IncompleteReadError):
            async with asyncio.TaskGroup() as group:
                ways = [group.create_task(self._up()), group.create_task(self._down())]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()

    async def _up(self) -> None:
        with suppress(OSError):
            while data := await self._client[0].read(_CHUNK):
                await self._proxy.pause(len(data))
                cut = self._proxy.planned(self._tail + data)
                if cut is not None and not cut.is_delivered:
                    end = (self._tail + data).index(cut.pattern) + len(cut.pattern) - len(self._tail)
                    await self._send(self._server[1], data[: min(cut.passing, end - 1)])
                    return
                self._tail = data[-256:]  # a pattern may come in two parts
                if cut is not None:
                    self._passing = cut.passing
                if not await self._pass(self._server[1], "up", data):
                    return

    async def _down(self) -> None:
        with suppress(OSError):
            while data := await self._server[0].read(_CHUNK):
                await self._proxy.pause(len(data))
                if self._passing is not None:
                    await self._send(self._client[1], data[: self._passing])
                    return
                if not await self._pass(self._client[1], "down", data):
                    return

    async def _pass(self, to: asyncio.StreamWriter, way: Way, data: bytes) -> bool:
        """Send what may get through; False if the connection is to be cut behind it."""
        end = self._proxy.passes(way, len(data))
        await self._send(to, data[:end])
        return end is None

    async def _send(self, to: asyncio.StreamWriter, data: bytes) -> None:
        to.write(data)
        await to.drain()


@asynccontextmanager
async def proxied(port: int, host: str = "127.0.0.1") -> AsyncIterator[Proxy]:
    """Open a proxy to a port, on a port of its own, as long as this lasts."""
    proxy = Proxy(host, port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        proxy.thaw()
        proxy.cut()
        await listener.wait_closed()
        while proxy.lines:  # noqa: ASYNC110 (each ends by itself now)
            await asyncio.sleep(0)
