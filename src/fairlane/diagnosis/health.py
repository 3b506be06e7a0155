"""Say whether the store answers, the duties are done and workers are alive: what probes ask for (S92)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.app.redaction import REDACTED
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros, iso, to_datetime
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest
from fairlane.store.contract.request import Request

LOOK_EVERY: Final[Micros] = 2 * SECOND
"""How old an answer may be: probes are asked by strangers, and often."""

WITHIN: Final = 2.0
"""Seconds in which the store must answer."""

DUTIES: Final = "duties"

State: TypeAlias = Literal["ok", "failing", "unknown"]

_ALL: Final = Scope.all()


class HealthPart(msgspec.Struct, frozen=True):
    """One part of an installation, and what is known of it, for those who may see it."""

    state: State
    detail: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The store, the duties, and the workers. Without the store nothing is known of the others."""

    store: HealthPart
    duties: HealthPart
    workers: HealthPart

    @property
    def is_ok(self) -> bool:
        """Whether nothing is missing."""
        return all(part.state == "ok" for part in (self.store, self.duties, self.workers))


class HealthWatch:
    """Looks at the store for all who ask within a moment. Used in one event loop."""

    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._looking = asyncio.Lock()
        self._answer: HealthPart | None = None
        self._answer_at: Micros = 0
        self._health: Health | None = None
        self._health_at: Micros = 0

    async def store_answers(self) -> HealthPart:
        """Return whether the store answers."""
        async with self._looking:
            if self._answer is None or self._clock.elapsed() - self._answer_at >= LOOK_EVERY:
                self._answer = await self._ask()
                self._answer_at = self._clock.elapsed()
            return self._answer

    async def health(self) -> Health:
        """Return how all of it is."""
        store = await self.store_answers()
        if store.state != "ok":
            unknown = HealthPart("unknown", "the store does not answer")
            return Health(store=store, duties=unknown, workers=unknown)
        async with self._looking:
            if self._health is None or self._clock.elapsed() - self._health_at >= LOOK_EVERY:
                self._health = await self._look(store)
                self._health_at = self._clock.elapsed()
            return self._health

    async def _ask(self) -> HealthPart:
        begin = self._clock.elapsed()
        try:
            async with asyncio.timeout(WITHIN):
                await self._store().registry.status(Request(scope=_ALL))
        except (StoreError, TimeoutError, OSError) as error:
            return HealthPart("failing", REDACTED.text(str(error)) or f"no answer within {WITHIN:g} s")
        return HealthPart("ok", f"answers in {(self._clock.elapsed() - begin) / 1000:.1f} ms")

    async def _look(self, store_part: HealthPart) -> Health:
        try:
            async with asyncio.timeout(WITHIN):
                store = self._store()
                now = (await store.registry.status(Request(scope=_ALL))).now
                workers = await store.registry.workers(WorkersRequest(scope=_ALL, seen_within=LIVE_WITHIN))
                leads = (await store.upkeep.inspect(InspectRequest(scope=_ALL, at_most=0))).leads
        except (StoreError, TimeoutError, OSError) as error:
            failing = HealthPart("failing", REDACTED.text(str(error)) or f"no answer within {WITHIN:g} s")
            unknown = HealthPart("unknown", "the store does not answer")
            return Health(store=failing, duties=unknown, workers=unknown)
        until = [lead.until for lead in leads if lead.name == DUTIES]
        by = [lead.worker for lead in leads if lead.name == DUTIES and lead.until > now]
        if by:
            duties = HealthPart("ok", f"done by {by[0]}")
        elif until:
            duties = HealthPart("failing", f"nobody does them since {iso(to_datetime(until[0]))}")
        else:
            duties = HealthPart("failing", "nobody has ever done them")
        count = len(workers)
        live = HealthPart("ok", f"{count} live") if count else HealthPart("failing", "no worker is live")
        return Health(store=store_part, duties=duties, workers=live)
