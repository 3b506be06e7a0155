"""The access facet: users, tokens, sessions, sign-in links, attempts to sign in (S79-S81).

A change is computed here and written if what was read is still stored; else it is read and computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from fairlane.model.access_records import (
    AccessKey,
    AccessRow,
    Attempts,
    attempts_now,
    is_seen_again,
    live,
    longest_wait,
)
from fairlane.model.instants import Instant, Micros
from fairlane.store.access_rows import changed_records, changed_row, is_as_expected, pack_access
from fairlane.store.audit_entries import access_entries
from fairlane.store.contract.access import (
    AccessFindRequest,
    AccessListRequest,
    AccessReply,
    AccessWriteRequest,
    AttemptRequest,
    ForgiveRequest,
    SeenRequest,
)
from fairlane.store.contract.request import Request, check_page, check_serves_all
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import encode_entries

_Hash: TypeAlias = Literal["access", "attempts"]

_AT_ONCE: Final = 500
"""How many one script reads or deletes."""

_read_row: Final = msgspec.msgpack.Decoder(AccessRow).decode
_read_attempts: Final = msgspec.msgpack.Decoder(Attempts).decode


class _Field(NamedTuple):
    """A field to replace: as it was read, as it is now, and when it ends. Empty bytes are none."""

    name: str
    before: bytes
    after: bytes = b""
    ends_at: Instant | None = None


class RedisAccess:
    """Records in one hash and counts of attempts in another, each with a sorted set of ends."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def write(self, request: AccessWriteRequest) -> bool:
        check_serves_all(request)
        while True:
            now, stored = await self._stored("access", (_field(one.key) for one in request.changes))
            rows = {
                one.key: _read_row(stored[_field(one.key)])
                for one in request.changes
                if stored[_field(one.key)]
            }
            if not all(is_as_expected(one, rows.get(one.key), now) for one in request.changes):
                return False
            fields = []
            for one in request.changes:
                name, row = _field(one.key), changed_row(one, rows.get(one.key), now)
                fields.append(_row_field(name, stored[name], row))
            entries = access_entries(request.operation, changed_records(request, rows, now))
            if await self._replace("access", now, fields, encode_entries("audit", entries)):
                return True

    async def find(self, request: AccessFindRequest) -> AccessReply:
        check_serves_all(request)
        now, stored = await self._stored("access", map(_field, request.keys))
        return AccessReply(_live_rows(stored, map(_field, request.keys), now), now)

    async def list(self, request: AccessListRequest) -> AccessReply:
        check_serves_all(request)
        check_page(request.limit)
        found: list[AccessRow] = []
        after, key = _field(AccessKey(request.kind, request.after)), self._client.keys("access_named")
        while True:
            page = (key, f"({after}", f"({request.kind}\1", "BYLEX", "LIMIT", 0, _AT_ONCE)
            names = [name.decode() for name in await self._client.ask("ZRANGE", *page)]
            now, stored = await self._stored("access", names)
            found += _live_rows(stored, names, now)
            if len(names) < _AT_ONCE or len(found) >= request.limit:
                return AccessReply(tuple(found[: request.limit]), now)
            after = names[-1]

    async def note_seen(self, request: SeenRequest) -> None:
        check_serves_all(request)
        while True:
            now, stored = await self._stored("access", map(_field, request.keys))
            fields = []
            for name, raw in stored.items():
                row = live(_read_row(raw), now) if raw else None
                if row is not None and is_seen_again(row, now):
                    fields.append(_row_field(name, raw, msgspec.structs.replace(row, seen_at=now)))
            if not fields or await self._replace("access", now, fields):
                return

    async def attempt(self, request: AttemptRequest) -> Micros:
        check_serves_all(request)
        while True:
            now, stored = await self._stored("attempts", request.most)
            counts = {
                label: attempts_now(_read_attempts(raw) if raw else None, now, request.within)
                for label, raw in stored.items()
            }
            wait = longest_wait(counts, request.most, now)
            if wait:
                return wait
            fields = [
                _count_field(label, raw, Attempts(counts[label].count + 1, counts[label].until))
                for label, raw in stored.items()
            ]
            if await self._replace("attempts", now, fields):
                return 0

    async def forgive(self, request: ForgiveRequest) -> None:
        check_serves_all(request)
        while True:
            now, stored = await self._stored("attempts", request.labels)
            kept = {label: _read_attempts(raw) for label, raw in stored.items() if raw}
            fields = [
                _count_field(label, stored[label], Attempts(max(one.count - 1, 0), one.until))
                for label, one in kept.items()
            ]
            if not fields or await self._replace("attempts", now, fields):
                return

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        cleaned, is_more = 0, True
        while is_more:
            count, is_more = await self._client.run("access/clean", _AT_ONCE)
            cleaned += count
        return cleaned

    async def _stored(self, which: _Hash, fields: Iterable[str]) -> tuple[Instant, dict[str, bytes]]:
        """Return the instant, and what is stored of these fields."""
        names = tuple(fields)
        now, *stored = await self._client.run("access/read", which, *names)
        return now, dict(zip(names, stored, strict=True))

    async def _replace(
        self, which: _Hash, now: Instant, fields: Sequence[_Field], entries: bytes = b""
    ) -> bool:
        values = (
            (one.name, one.before, one.after, "" if one.ends_at is None else one.ends_at) for one in fields
        )
        flat: list[Any] = [value for field in values for value in field]
        return bool(await self._client.run("access/replace", which, entries, *flat, at=now))


def _field(key: AccessKey) -> str:
    return f"{key.kind}\0{key.name}"


def _row_field(name: str, before: bytes, row: AccessRow | None) -> _Field:
    return _Field(name, before) if row is None else _Field(name, before, pack_access(row), row.expires_at)


def _count_field(label: str, before: bytes, counted: Attempts) -> _Field:
    return _Field(label, before, pack_access(counted), counted.until)


def _live_rows(stored: Mapping[str, bytes], names: Iterable[str], now: Instant) -> tuple[AccessRow, ...]:
    found = (live(_read_row(stored[name]), now) for name in names if stored[name])
    return tuple(row for row in found if row is not None)
