"""A store at whose n-th call something happens to the caller. Knows no duty."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fairlane.store.contract import Store


class KilledError(Exception):
    """The caller ends here; what it has sent is done, what it would have sent is not."""


class InterruptedStore:
    """Passes calls on to a store, and does something before one of them. `calls` counts all."""

    def __init__(self, store: Store, before: int, then: Callable[[], Awaitable[None]]) -> None:
        """Do it before the call of this number, the first being 0."""
        self.calls = 0
        self._store = store
        self._before = before
        self._then = then

    def __getattr__(self, name: str) -> Any:
        """Return a facet."""
        return _Facet(self, getattr(self._store, name))

    async def called(self) -> None:
        """Count a call."""
        self.calls += 1
        if self.calls - 1 == self._before:
            await self._then()


class _Facet:
    def __init__(self, store: InterruptedStore, facet: Any) -> None:
        self._store = store
        self._facet = facet

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._facet, name)

        async def call(request: Any) -> Any:
            await self._store.called()
            return await verb(request)

        return call


async def killed() -> None:
    """End the caller."""
    raise KilledError
