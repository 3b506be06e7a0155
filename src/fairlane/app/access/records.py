"""Read and write the records of access: by key, all of a kind, and changes that are tried again.

Whoever calls has checked that it acts for no tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from fairlane.app.client import Client
from fairlane.model.access_records import AccessKey, AccessKind, AccessRow
from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant, Micros
from fairlane.model.journal.operations import Operation
from fairlane.model.scope import Scope
from fairlane.store.contract.access import (
    AccessChange,
    AccessFindRequest,
    AccessListRequest,
    AccessReply,
    AccessWriteRequest,
)
from fairlane.store.contract.request import MAX_PAGE_SIZE

R = TypeVar("R", bound=msgspec.Struct)

_TRIES: Final = 20


class FoundRecord(NamedTuple, Generic[R]):
    """A record that is there, how it is kept, and the store's now."""

    row: AccessRow
    record: R
    now: Instant

    @property
    def removal(self) -> AccessChange:
        """The change that removes it, unless it has changed meanwhile."""
        return AccessChange(key=self.row.record.key, revision=self.row.revision)


class AccessRecords:
    """The records of access of one application's store."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, *keys: AccessKey) -> AccessReply:
        """Return the records that are there, and the store's now."""
        return await self._client.store.access.find(AccessFindRequest(scope=Scope.all(), keys=keys))

    async def find(self, kind: type[R], key: AccessKey) -> FoundRecord[R] | None:
        """Return one record; None if it is not there."""
        reply = await self.read(key)
        for row in reply.rows:
            if isinstance(row.record, kind):
                return FoundRecord(row, row.record, reply.now)
        return None

    async def all(self, kind: AccessKind) -> list[AccessRow]:
        """Return all records of a kind by name."""
        found: list[AccessRow] = []
        after = ""
        while True:
            reply = await self._client.store.access.list(
                AccessListRequest(scope=Scope.all(), kind=kind, after=after)
            )
            found += reply.rows
            if len(reply.rows) < MAX_PAGE_SIZE:
                return found
            after = found[-1].record.key.name

    async def write(self, *changes: AccessChange, operation: Operation | None) -> bool:
        """Change records, all or none; False if one has changed meanwhile."""
        return await self._client.store.access.write(
            AccessWriteRequest(scope=Scope.all(), changes=changes, operation=operation)
        )

    async def add(self, record: Any, operation: Operation | None, valid_for: Micros | None = None) -> bool:
        """Store a new record; False if there is one already."""
        change = AccessChange(key=record.key, record=record, valid_for=valid_for)
        return await self.write(change, operation=operation)

    async def retry(self, change: Callable[[], Awaitable[bool]]) -> None:
        """Read and write until nobody was faster."""
        for _ in range(_TRIES):
            if await change():
                return
        raise StoreBusy("others keep changing it; nothing was changed")
