"""One fixture for both libraries, and one for tests that do not depend on the library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.outbox.shop import SHOPS, PlainShop, Shop
from tests.stores import MEMORY


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the machine has a place for that."""
    with TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


@pytest.fixture(params=sorted(SHOPS))
def any_shop(request: pytest.FixtureRequest, folder: Path) -> Iterator[Shop]:
    """The application, for each library there is."""
    shop = SHOPS[request.param](folder)
    yield shop
    shop.close()


@pytest.fixture
def shop(folder: Path) -> Iterator[Shop]:
    """The application with the standard library's sqlite3."""
    made = PlainShop(folder)
    yield made
    made.close()
