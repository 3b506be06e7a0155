"""Children that a test starts end with it, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import Child, Start


@pytest.fixture
def start() -> Iterator[Start]:
    """Start children; those that still live after the test are killed."""
    children: list[Child] = []

    def begin(role: str, file: Path, number: int) -> Child:
        children.append(Child(role, file, number))
        return children[-1]

    yield begin
    for child in children:
        child.stop()
