"""A client of a stream of server-sent events: it reads while the answer comes, and leaves when it likes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec
from starlette.applications import Starlette

from fairlane.model.access import Role
from fairlane.web.locations import API


class Stream:
    """One request whose answer has no end."""

    def __init__(
        self,
        web: Starlette,
        path: str,
        *,
        query: bytes = b"",
        headers: Mapping[str, str] | None = None,
        tenant: str | None = None,
    ) -> None:
        """Prepare the request of an admin."""
        known = {"x-test-role": Role.ADMIN.value, "host": "localhost", **(headers or {})}
        known |= {} if tenant is None else {"x-test-tenant": tenant}
        self._web = web
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": API + path,
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 5_000),
            "query_string": query,
            "headers": [(name.encode(), value.encode()) for name, value in known.items()],
        }
        self._gone = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_sent = False
        self._is_over = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = b""

    async def run(self) -> None:
        """Send the request, and read until the server ends or the client leaves."""
        try:
            await self._web(self._scope, self._receive, self._take)
        finally:
            self._is_over = True
            self._changed.set()

    def leave(self) -> None:
        """Close the connection."""
        self._gone.set()

    async def messages(self, wanted: int) -> list[dict[str, Any]]:
        """Wait for so many messages and return them, their data decoded."""
        while len(found := self._messages()) < wanted:
            assert not self._is_over, self.raw
            await self._changed.wait()
            self._changed.clear()
        return found[:wanted]

    async def ended(self) -> None:
        """Wait until the server has ended the answer."""
        while not self._is_over:
            await self._changed.wait()
            self._changed.clear()

    def _messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for block in self.raw.decode().replace("\r\n", "\n").split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            if "data" in fields:
                found.append({**fields, "data": msgspec.json.decode(fields["data"])})
        return found

    async def _receive(self) -> dict[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _take(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.raw += message.get("body", b"")
        self._changed.set()
