"""Cut what is too long for one batch into batches. Knows no job and no store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from fairlane.model.checking import is_whole, shown
from fairlane.store.contract.jobs import BATCH_MOST

T = TypeVar("T")


def chunks(items: Iterable[T], size: int = BATCH_MOST) -> Iterator[list[T]]:
    """Give the items in lists of at most so many, in order, reading no further ahead than one list.

    `enqueue_many` takes one such list at a time (S12): each is stored whole or not at all, all of them
    together are not.

    >>> list(chunks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    if not is_whole(size) or size < 1:
        message = f"a chunk holds at least one item, not {shown(size)}"
        raise ValueError(message)
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
