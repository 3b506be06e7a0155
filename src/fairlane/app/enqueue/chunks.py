"""Cut a long list of calls into batches. Knows no job and no store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from fairlane.model.checking import is_whole, shown
from fairlane.store.contract.jobs import MAX_BATCH_SIZE

T = TypeVar("T")


def chunks(items: Iterable[T], size: int = MAX_BATCH_SIZE) -> Iterator[list[T]]:
    """Yield the items in order, in lists of at most `size`, without reading ahead more than one list.

    Pass each list to `enqueue_many` (S12). A list is stored whole or not at all; several lists together are
    not atomic.

    >>> list(chunks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    if not is_whole(size) or size < 1:
        message = f"size is {shown(size)}; use a whole number, 1 or more"
        raise ValueError(message)
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
