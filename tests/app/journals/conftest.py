"""Helpers: a leader that seals and numbers, on the oracle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import pytest

from fairlane.duties.journals.seal_audit import SealAudit
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import AppendRequest
from tests.app.world import World
from tests.duties.journals.crew import sealer, teller

KEY = b"a key of sixteen bytes"

Append: TypeAlias = Callable[..., Awaitable[None]]
Lead: TypeAlias = Callable[..., Awaitable[None]]


@pytest.fixture
def append(world: World) -> Append:
    """Return a function that appends entries, each of its own instant."""

    async def append(*entries: NewEntry, journal: JournalName = "audit") -> None:
        for entry in entries:
            request = AppendRequest(scope=Scope.all(), journal=journal, entries=(entry,))
            await world.oracle.journal.append(request)
            world.clock.advance(1)

    return append


@pytest.fixture
def seal(world: World) -> Lead:
    """Return a function that lets a leader seal what waits in the audit."""

    async def seal(key: bytes | None = KEY, **settings: Any) -> None:
        duty: SealAudit = sealer(key=key, **settings)
        while not await duty(cast("Store", world.oracle)):
            pass

    return seal


@pytest.fixture
def tell(world: World) -> Lead:
    """Return a function that lets a leader number the events."""

    async def tell() -> None:
        duty = teller()
        while not await duty(cast("Store", world.oracle)):
            pass

    return tell
