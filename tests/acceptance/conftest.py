"""A world on a new store for each test, of each kind; the books must balance at the end of every one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.acceptance.crew import Crew
from tests.acceptance.working import Stage
from tests.acceptance.world import World
from tests.invariants import check
from tests.servers import valkey
from tests.servers.postgres import MEMORY
from tests.servers.schemas import lent_schema, url_of


@asynccontextmanager
async def _on_a_file(folder: Path) -> AsyncIterator[str]:
    yield f"sqlite:///{folder}/fairlane.db"


@asynccontextmanager
async def _on_a_server(_: Path) -> AsyncIterator[str]:
    async with lent_schema() as schema:
        yield url_of(schema)


@asynccontextmanager
async def _under_a_prefix(_: Path) -> AsyncIterator[str]:
    async with valkey.lent_prefix() as prefix:
        yield valkey.url_of(prefix)


PLACES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[str]]]] = {
    "postgres": _on_a_server,
    "redis": _under_a_prefix,
    "sqlite": _on_a_file,
}
"""Name to what makes an empty place for a store and gives its URL."""

LONG: Final = {
    "test_000_qc_5_critical_has_no_limit",
    "test_000_qc_15_a_backlog_of_100_000_does_not_delay_anothers_first_job",
    "test_001_cp2_3_sigterm_in_the_middle_of_a_job_lets_it_finish",
    "test_001_cp2_4_a_killed_worker_is_recognised_as_lost",
    "test_001_ix_9_the_race_for_a_key_always_has_one_winner",
    "test_001_qm_9_weights_3_2_1_1_give_their_shares_of_1000_starts",
    "test_001_wk_6_a_second_sigint_ends_the_worker_at_once",
    "test_001_wk_6_sigint_is_as_graceful",
    "test_003_op_8_a_rolling_restart_under_load_loses_nothing",
}
"""Rows of five seconds and more that say of a worker, or that the contract suite says of each store.

On Redis they are left out unless `FAIRLANE_TEST_EVERY_ROW` is set."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what takes long and says nothing new."""
    if not os.environ.get("FAIRLANE_TEST_EVERY_ROW"):
        items[:] = [
            one for one in items if not (getattr(one, "originalname", "") in LONG and "[redis" in one.name)
        ]


@pytest.fixture(params=sorted(PLACES))
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """An empty store and nobody at work."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            made = World(place, Path(folder))
            try:
                yield made
                if made.is_recounted:
                    await check(made.store)
            finally:
                await made.aclose()


@pytest.fixture
def stage() -> Stage:
    """An empty stage for handlers."""
    return Stage()


@pytest.fixture(params=sorted(PLACES))
async def crew(request: pytest.FixtureRequest) -> AsyncIterator[Crew]:
    """A folder for worker processes; nobody of them is left at the end, and the books balance."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            made = Crew(place, Path(folder))
            try:
                yield made
                made.end()
                await check(made.app.client.store)
            finally:
                made.end()
                await made.app.aclose()
