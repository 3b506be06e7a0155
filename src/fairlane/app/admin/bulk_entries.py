"""Audit a bulk action by one entry at its start and one at its end (S60). Does nothing itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import msgspec

from fairlane.app.admin.operations import operation
from fairlane.model.errors import StoreError
from fairlane.model.journal.operations import Operation, entry_of
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import AppendRequest


class BulkAction(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to many: its name in the audit, on what, who does it, and why."""

    action: str
    subject: str
    scope: Scope
    who: str | None = None
    note: str = ""


class BulkResultEntry:
    """What the entry at the end will say."""

    def __init__(self) -> None:
        self.result: Mapping[str, Any] = {}


@asynccontextmanager
async def audited(store: Store, bulk: BulkAction, **begin: Any) -> AsyncGenerator[BulkResultEntry]:
    """Append an entry with `begin`, and at the end of the block one with its result, or with its error.

    Both have the same `run`. Without the second one the action was killed. A handler leaves none.
    """
    done = operation(bulk.action, who=bulk.who, note=bulk.note)
    end = BulkResultEntry()
    if done is None:
        yield end
        return
    run = str(uuid4())
    await _append(store, bulk, done, {"run": run, "step": "begin", **begin})
    try:
        yield end
    except BaseException as error:
        with suppress(StoreError):
            failed = {"run": run, "step": "end", "error": type(error).__name__}
            await _append(store, bulk, done, failed)
        raise
    await _append(store, bulk, done, {"run": run, "step": "end", "result": end.result})


async def _append(store: Store, bulk: BulkAction, done: Operation, details: Mapping[str, Any]) -> None:
    entry = entry_of(msgspec.structs.replace(done, details=details), bulk.subject, bulk.scope.tenant)
    await store.journal.append(AppendRequest(scope=bulk.scope, journal="audit", entries=(entry,)))
