"""Cutting a long list of calls into batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import Fairlane, State, chunks


def test_more_than_a_batch_is_enqueued_chunk_by_chunk(tmp_path: Path) -> None:
    """In order, each chunk whole, and nothing left out at the end."""
    with Fairlane(f"sqlite:///{tmp_path}/fairlane.db", config={}) as app:
        task = app.task(name="work")(_work)
        sizes = [
            len(app.enqueue_many(chunk))
            for chunk in chunks(task.using(tenant="acme").bind(number) for number in range(2_001))
        ]
        assert sizes == [1_000, 1_000, 1]
        assert app.jobs.count()[State.READY] == 2_001


def _work(number: int) -> None:
    """Do nothing."""


def test_no_more_is_read_than_one_chunk_needs() -> None:
    """A list that never ends can be enqueued as it comes."""
    read: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            read.append(len(read))
            yield read[-1]

    cut = chunks(endless(), 3)
    assert (next(cut), next(cut)) == ([0, 1, 2], [3, 4, 5])
    assert len(read) == 6


@pytest.mark.parametrize("size", [0, -1])
def test_a_chunk_holds_something(size: int) -> None:
    """Else it would never end."""
    with pytest.raises(ValueError, match=f"size is {size}; use a whole number, 1 or more"):
        next(chunks([1], size))
