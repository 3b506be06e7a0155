"""Decide whether a store is so full that history has to go before its time (S126). Knows sizes, no store."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.model.instants import Instant

WARN_ABOVE: Final = 80
"""Per cent of the limit above which it is told."""

PRUNE_ABOVE: Final = 85
"""Per cent of the limit above which it is told as critical, and history goes early, until it is below."""

Pressure: TypeAlias = Literal["ok", "warn", "bad"]


class StoreSize(msgspec.Struct, frozen=True):
    """How many bytes a store uses, as it measures that itself; and the limit that its server has, if any."""

    used: int
    limit: int | None = None

    def limit_with(self, own: int | None) -> int | None:
        """Return the limit that counts: the smaller one of the server's and of the settings'.

        >>> StoreSize(5, 10).limit_with(20), StoreSize(5, 10).limit_with(None), StoreSize(5).limit_with(None)
        (10, 10, None)
        """
        return min((one for one in (self.limit, own) if one is not None), default=None)

    def per_cent(self, own: int | None) -> float:
        """Return how full the store is; 0 without any limit.

        >>> StoreSize(5, 10).per_cent(None), StoreSize(5).per_cent(None), StoreSize(5).per_cent(0)
        (50.0, 0.0, 500.0)
        """
        limit = self.limit_with(own)
        return 0.0 if limit is None else 100 * self.used / max(limit, 1)

    def pressure(self, own: int | None) -> Pressure:
        """Return what that means.

        >>> [StoreSize(used, 100).pressure(None) for used in (80, 81, 85, 86)]
        ['ok', 'warn', 'warn', 'bad']
        """
        share = self.per_cent(own)
        return "bad" if share > PRUNE_ABOVE else "warn" if share > WARN_ABOVE else "ok"


class EarlyCut(msgspec.Struct, frozen=True):
    """The settlement before which a pass removes history early; `has_more`: another pass finds more of it."""

    at: Instant = 0
    has_more: bool = False


NOTHING_EARLY: Final = EarlyCut()


def early_cut(oldest: list[Instant], limit: int) -> EarlyCut:
    """Return the cut for the oldest settlements, in order; `limit` of them were looked for.

    >>> early_cut([3, 5, 5], 3), early_cut([3], 3), early_cut([], 3)
    (EarlyCut(at=6, has_more=True), EarlyCut(at=4, has_more=False), EarlyCut(at=0, has_more=False))
    """
    return EarlyCut(oldest[-1] + 1, len(oldest) >= limit) if oldest else NOTHING_EARLY
