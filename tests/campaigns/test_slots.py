"""Five thousand slots in virtual time, and proof that the judge sees each promise broken."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from fairlane.duties.schedules import fire, make_jobs
from fairlane.model.instants import HOUR
from fairlane.model.job import JobRecord
from fairlane.model.schedule import slot_jobs
from tests.campaigns.single import run_piece
from tests.campaigns.slots import live
from tests.contract.world import World


@pytest.mark.parametrize(("store", "slots"), [("sqlite", 3_000), ("postgres", 1_000), ("redis", 1_000)])
def test_no_slot_is_doubled_or_lost(store: str, slots: int) -> None:
    """`make prove` does a hundred thousand on each store."""
    found = run_piece("slots", store, slots, seconds=120)
    assert found.failures == ()
    assert found.n >= slots
    assert min(found.figures[name] for name in ("kills", "pauses", "missed", "nights")) > 0


def _twice(patch: pytest.MonkeyPatch) -> None:
    """Make another id each time, as from a counter."""
    draw = random.Random(1)
    original = slot_jobs.job_of_slot

    def job_of_slot(*arguments: Any, **options: Any) -> Any:
        job = original(*arguments, **options)
        return replace(job, id=UUID(int=job.id.int ^ draw.getrandbits(30)), correlation_id=str(job.id))

    patch.setattr(fire, "job_of_slot", job_of_slot)


def _early(patch: pytest.MonkeyPatch) -> None:
    """Let jobs be older than they are: the stores take no slot before its time, whatever a duty asks for."""
    original = World.find_all

    async def find_all(world: World) -> list[JobRecord]:
        return [replace(job, enqueued_at=job.enqueued_at - HOUR) for job in await original(world)]

    patch.setattr(World, "find_all", find_all)


def _lost(patch: pytest.MonkeyPatch) -> None:
    """Say of a single slot that its job is there."""
    original = make_jobs.make_jobs

    async def forgetful(store: Any, jobs: Any, **options: Any) -> Any:
        return (
            [make_jobs.SlotAnswer("enqueued") for _ in jobs]
            if len(jobs) == 1
            else await original(store, jobs, **options)
        )

    patch.setattr(fire, "make_jobs", forgetful)


def _in_a_burst(patch: pytest.MonkeyPatch) -> None:
    """Make up for a pause."""
    patch.setattr("tests.campaigns.slots.restarted", lambda record, now: replace(record, next_at=now))


@pytest.mark.parametrize(
    ("harm", "says"),
    [(_twice, "has 2 jobs"), (_early, "was enqueued at"), (_lost, "differ"), (_in_a_burst, "one of a pause")],
)
async def test_the_judge_sees_a_broken_promise(
    harm: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the oracle, in one of some nights."""
    harm(monkeypatch)
    for seed in range(20):
        if any(says in text for text in (await live("oracle", seed, 500)).wrong):
            return
    raise AssertionError(f"no night shows that a slot {says}")
