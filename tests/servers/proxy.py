"""A network between a client and a server that can be broken: a proxy that cuts, stalls, slows and refuses.

Lives in the loop of the test. Understands no protocol: it looks for bytes, not for messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

_CHUNK: Final = 65_536


class _Cut(NamedTuple):
    """Cut a connection whose client sends these bytes: before the server has them, or when it answers."""

    pattern: bytes
    is_delivered: bool


class Proxy:
    """One listening port that leads to one server."""

    def __init__(self, host: str, port: int) -> None:
        """Know where it leads; `is_refusing` and `delay` may be set at any time."""
        self.is_refusing = False
        self.delay = 0.0
        self.port = 0
        self.cuts_made = 0
        self._target = (host, port)
        self._open = asyncio.Event()
        self._open.set()
        self._lines: set[_Line] = set()
        self._planned: list[_Cut] = []

    def cut(self) -> None:
        """Reset every connection now."""
        for line in list(self._lines):
            line.abort()

    def freeze(self) -> None:
        """Let no byte through any more and tell nobody: the network is gone, the sockets are not."""
        self._open.clear()

    def thaw(self) -> None:
        """Let everything through again, also what was held back."""
        self._open.set()

    def cut_after(self, pattern: bytes) -> None:
        """Let the next message with these bytes through, and cut as soon as the server has answered it."""
        self._planned.append(_Cut(pattern, is_delivered=True))

    def cut_before(self, pattern: bytes) -> None:
        """Cut the connection whose client sends these bytes next; the server never gets them."""
        self._planned.append(_Cut(pattern, is_delivered=False))

    def planned(self, data: bytes) -> _Cut | None:
        """Take the plan that these bytes fulfil, if there is one."""
        for cut in self._planned:
            if cut.pattern in data:
                self._planned.remove(cut)
                self.cuts_made += 1
                return cut
        return None

    async def pause(self) -> None:
        """Wait as long as a byte takes."""
        await self._open.wait()
        if self.delay:
            await asyncio.sleep(self.delay)

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

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._is_doomed = False

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
                await self._proxy.pause()
                cut = self._proxy.planned(data)
                if cut is not None and not cut.is_delivered:
                    return
                self._is_doomed = self._is_doomed or cut is not None
                self._server[1].write(data)
                await self._server[1].drain()

    async def _down(self) -> None:
        with suppress(OSError):
            while data := await self._server[0].read(_CHUNK):
                await self._proxy.pause()
                if self._is_doomed:
                    return
                self._client[1].write(data)
                await self._client[1].drain()


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
