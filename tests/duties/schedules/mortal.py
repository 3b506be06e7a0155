"""A store whose user is killed at some call: before it is sent, or before its answer is read."""

from __future__ import annotations

from typing import Any


class Killed(BaseException):
    """The process is gone."""


class Mortal:
    """Another store, up to the n-th call."""

    def __init__(self, store: Any, at: int, *, is_sent: bool) -> None:
        """Be another store otherwise."""
        self._store = store
        self._left = at
        self._is_sent = is_sent

    def __getattr__(self, facet: str) -> Any:
        return _MortalFacet(self, getattr(self._store, facet))

    async def call(self, verb: Any, request: Any) -> Any:
        """Call a verb, or die."""
        self._left -= 1
        if self._left >= 0:
            return await verb(request)
        if self._is_sent:
            await verb(request)
        raise Killed


class _MortalFacet:
    def __init__(self, store: Mortal, facet: Any) -> None:
        self._store = store
        self._facet = facet

    def __getattr__(self, verb: str) -> Any:
        return lambda request: self._store.call(getattr(self._facet, verb), request)
