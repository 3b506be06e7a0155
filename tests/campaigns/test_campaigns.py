"""Small versions of the campaigns on every store, and proof that a campaign can fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import pytest

from fairlane.lab import ledger
from fairlane.model.job import JobRecord
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, staged
from tests.campaigns.roster import CAMPAIGNS
from tests.campaigns.single import run_piece
from tests.campaigns.soak import Soak

SMALL = [
    ("worker-kill", "redis", 1),
    ("worker-pause", "postgres", 1),
    ("supervisor-kill", "sqlite", 2),
    ("child-kill", "redis", 2),
    ("poison", "postgres", 3),
    ("rolling-restart", "postgres", 1),
    ("server-kill", "redis-always", 1),
    ("connection-kill", "postgres", 3),
    ("commit-cut", "postgres", 10),
    ("commit-cut", "redis", 10),
    ("clock", "sqlite", 1),
    ("soak", "sqlite", 500),
]
"""What other tests do not do in the same way: SQLite's own faults are in tests/faults and tests/processes."""


@pytest.mark.parametrize(("name", "store", "number"), SMALL)
def test_a_small_campaign_finds_nothing(name: str, store: str, number: int) -> None:
    """Judged from outside, as the long one is."""
    found = run_piece(name, store, number, seconds=60)
    assert found.failures == ()
    assert found.n >= number
    assert found.versions["store"]
    assert found.figures["jobs"] > 0


def test_requests_to_the_api_find_nothing() -> None:
    """As many as are worth a test here; two thousand are in the tests of the API."""
    found = run_piece("requests", "sqlite", 300, seconds=60)
    assert found.failures == ()
    assert found.n >= 300
    assert found.figures["answers_2xx"] > 10
    assert found.figures["answers_4xx"] > 10
    assert "answers_5xx" not in found.figures


async def lose_a_job(field: Field) -> None:
    """Say that something was acknowledged which is not there."""
    job = field.job("short", 0)
    field.records.append(
        ledger.Acknowledged(job=str(job.id), tenant=job.tenant, queue=job.queue, task=job.task, at=1)
    )


async def run_for_nobody(field: Field) -> None:
    """Let a job be there that nobody has enqueued, as far as anybody wrote down."""
    await field.actor.send(field.job("short", 0))


async def lose_a_worker(field: Field) -> None:
    """Let a worker end that nobody has told to."""
    field.workers[0].popen.kill()


@pytest.mark.parametrize(
    ("harm", "story"),
    [(lose_a_job, "lost"), (run_for_nobody, "nobody enqueued it"), (lose_a_worker, "ended")],
    ids=["lost job", "nobody's job", "lost worker"],
)
def test_a_campaign_fails_when_a_promise_is_broken(
    harm: Callable[[Field], Awaitable[None]], story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken history is a failure in the piece, with its story."""

    async def play(errand: Errand) -> None:
        async with staged(errand) as field:
            await field.hire_ready(1)
            await field.actor.insist(field.job("short", 0))
            await harm(field)
            errand.done()

    broken = CAMPAIGNS["worker-kill"]._replace(play=play)
    monkeypatch.setitem(CAMPAIGNS, "worker-kill", broken)
    found = run_piece("worker-kill", "sqlite", 1, seconds=60)
    assert len(found.failures) == 1
    assert story in found.failures[0]


def test_a_soak_misses_a_job_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chapter is held against what the store has of it."""
    read = Soak.read

    async def forget_one(soak: Soak, ids: Sequence[UUID]) -> list[JobRecord]:
        return (await read(soak, ids))[1:]

    monkeypatch.setattr(Soak, "read", forget_one)
    found = run_piece("soak", "sqlite", 300, seconds=60)
    assert len(found.failures) == 1
    assert "lost" in found.failures[0]
