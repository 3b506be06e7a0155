"""Answer health probes over HTTP: a listener for processes that serve nothing else. Knows no store.

It reads the first line of a request, answers and closes. What it can be made to do by strangers is bounded:
a request has 8 KB and 5 s, and the number of open connections is bounded.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final, TypeAlias

ProbeAnswer: TypeAlias = Callable[[str], Awaitable[tuple[int, bytes]]]
"""Returns status and JSON for a path."""

_LONGEST: Final = 8_192
_WITHIN: Final = 5.0
"""Seconds."""
_MOST_AT_ONCE: Final = 20


class ProbeServer:
    """One listener of a process."""

    def __init__(self, answer: ProbeAnswer) -> None:
        self._answer = answer
        self._open = 0

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Answer in the running loop, until the server that is returned is closed."""
        return await asyncio.start_server(self._connected, sock=listener, limit=_LONGEST)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _MOST_AT_ONCE:
                with suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
                    async with asyncio.timeout(_WITHIN):
                        await self._exchange(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return
        method, path, _ = head.partition(b"\r\n")[0].decode("ascii").split(" ")
        if method not in {"GET", "HEAD"}:
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"{}"
        else:
            number, body = await self._answer(path.partition("?")[0])
            status = HTTPStatus(number)
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "cache-control: no-store",
            "connection: close",
        )
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (body if method == "GET" else b""))
        await writer.drain()


def probe_listener(host: str, port: int) -> socket.socket:
    """Listen at an address, which the processes of one command share; OSError if that cannot be.

    While one process takes over from another both are there, and either answers.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(_MOST_AT_ONCE)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
