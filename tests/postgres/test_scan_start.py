"""Where a look begins, of a duty or of a claim: behind what is dead, and now and then at the very first."""

from __future__ import annotations

import psycopg
import pytest

from fairlane.model.instants import SECOND
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.postgres.claims import reclaim
from fairlane.store.postgres.claims.reclaim import ScanStart
from tests.contract.world import ALL, World
from tests.servers.postgres import shared_url

AT = 1_000 * SECOND


def test_a_pass_begins_where_the_last_one_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first looks at everything, and so does one of many: what was left behind must be found."""
    monkeypatch.setattr(reclaim, "_FULL_SCAN_EVERY", 3)
    scan_start, begun = ScanStart(), []
    for number in range(7):
        begun.append(scan_start())
        scan_start.passed(AT + number, is_whole=True)
    assert begun == [0, AT, AT + 1, 0, AT + 3, AT + 4, 0]


def test_a_pass_that_left_something_is_followed_by_one_over_everything() -> None:
    """Nobody knows how far below the scan_start the rest is."""
    scan_start = ScanStart()
    scan_start.passed(AT, is_whole=True)
    scan_start.passed(AT + 1, is_whole=False)
    assert scan_start() == 0


def test_looking_at_everything_goes_on_as_long_as_it_is_cheap() -> None:
    """Without an old snapshot nothing is left out, not even what waits again long after its time."""
    scan_start = ScanStart()
    for number in range(5):
        scan_start.passed(AT + number, is_whole=True, took=SECOND // 100)
        assert scan_start() == 0
    scan_start.passed(AT + 5, is_whole=True, took=SECOND // 20)
    assert scan_start() == AT + 5
    scan_start.passed(AT + 6, is_whole=True, took=0)
    assert scan_start() == AT + 6


# ── claims ───────────────────────────────────────────────────────────────────


async def _go_on(world: World) -> None:
    """Let delayed jobs of others be claimed for a while, so that looks begin far behind them."""
    for _ in range(4):
        await world.enqueue("globex", delay=SECOND)
        world.advance(20)
        await world.run()


async def test_a_job_committed_long_after_it_was_due_is_handed_out_at_once(world: World) -> None:
    """S35: looks for due jobs begin no later than what an open transaction may still bring."""
    with psycopg.connect(shared_url()) as own:
        late = world.new(delay=SECOND)
        await world.store.jobs.enqueue_in(own, EnqueueRequest(scope=ALL, jobs=(late,)))
        await _go_on(world)
    assert [claim.job.id for claim in await world.claim(5)] == [late.id]


async def test_what_is_due_by_a_clock_that_went_back_is_handed_out(world: World) -> None:
    """S35: a beginning that lies ahead is none."""
    await _go_on(world)
    world.advance(-60)
    due = await world.enqueue(delay=SECOND)
    world.advance(1)
    assert [claim.job.id for claim in await world.claim(5)] == [due.id]
