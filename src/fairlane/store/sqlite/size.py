"""How much of the file is in use: what was freed inside of it is room for the next jobs (S126)."""

from __future__ import annotations

from fairlane.model.policy.pressure import StoreSize
from fairlane.store.sqlite.query import one_value
from fairlane.store.sqlite.transaction import Transaction


def read_size(tx: Transaction) -> StoreSize:
    """Return how many bytes the pages in use take."""
    pages, free = one_value(tx.db, "PRAGMA page_count"), one_value(tx.db, "PRAGMA freelist_count")
    return StoreSize((pages - free) * one_value(tx.db, "PRAGMA page_size"))
