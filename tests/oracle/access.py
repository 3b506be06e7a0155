"""The access facet of the oracle."""

from __future__ import annotations

from fairlane.model.access_records import (
    AccessKey,
    AccessRow,
    Attempts,
    attempts_now,
    is_seen_again,
    live,
    longest_wait,
    next_row,
)
from fairlane.model.instants import Micros
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
from tests.oracle.audit import Audit
from tests.oracle.core import Core


class OracleAccess:
    """Records and counts in plain dictionaries."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core
        self._rows: dict[AccessKey, AccessRow] = {}
        self._attempts: dict[str, Attempts] = {}

    def _live(self, key: AccessKey) -> AccessRow | None:
        return live(self._rows.get(key), self._core.now())

    async def write(self, request: AccessWriteRequest) -> bool:
        check_serves_all(request)
        now, audit = self._core.now(), Audit(self._core, request.operation)
        for one in request.changes:
            row = self._live(one.key)
            if one.revision != (0 if row is None else row.revision):
                return False
        for one in request.changes:
            row = self._live(one.key)
            audit.access(None if row is None else row.record, one.record)
            stored = self._rows.pop(one.key, None)
            if one.record is not None:
                self._rows[one.key] = next_row(stored, one.record, now, one.valid_for)
        return True

    async def find(self, request: AccessFindRequest) -> AccessReply:
        check_serves_all(request)
        found = (self._live(key) for key in request.keys)
        return AccessReply(tuple(row for row in found if row is not None), self._core.now())

    async def list(self, request: AccessListRequest) -> AccessReply:
        check_serves_all(request)
        check_page(request.limit)
        keys = sorted(key for key in self._rows if key.kind == request.kind and key.name > request.after)
        rows = [row for row in map(self._live, keys) if row is not None]
        return AccessReply(tuple(rows[: request.limit]), self._core.now())

    async def note_seen(self, request: SeenRequest) -> None:
        check_serves_all(request)
        now = self._core.now()
        for key in request.keys:
            row = self._live(key)
            if row is not None and is_seen_again(row, now):
                self._rows[key] = AccessRow(row.record, row.revision, row.created_at, now, row.expires_at)

    async def attempt(self, request: AttemptRequest) -> Micros:
        check_serves_all(request)
        now = self._core.now()
        counts = {
            label: attempts_now(self._attempts.get(label), now, request.within) for label in request.most
        }
        wait = longest_wait(counts, request.most, now)
        if not wait:
            self._attempts |= {label: Attempts(one.count + 1, one.until) for label, one in counts.items()}
        return wait

    async def forgive(self, request: ForgiveRequest) -> None:
        check_serves_all(request)
        for label in request.labels:
            if label in self._attempts:
                one = self._attempts[label]
                self._attempts[label] = Attempts(max(one.count - 1, 0), one.until)

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        now = self._core.now()
        over = [label for label, one in self._attempts.items() if one.until <= now]
        for label in over:
            del self._attempts[label]
        old = [key for key in self._rows if self._live(key) is None]
        for key in old:
            del self._rows[key]
        return len(old)
