"""The doctor's duty: what it tells, once, whoever leads; and what is read of it later (S76)."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from fairlane.app.doctor_settings import DoctorSettings
from fairlane.app.settings import settings_of
from fairlane.diagnosis.findings import past_findings
from fairlane.duties.diagnose import EVERY, Diagnose
from fairlane.model.duty_report import DutyReport, DutyReports
from fairlane.model.instants import DAY, MINUTE, SECOND
from fairlane.store.contract.registry import LeadRequest
from tests.contract.world import ALL, World
from tests.duties.journals.crew import tell
from tests.duties.test_passes import Beside


def duty_of(world: World, **thresholds: Any) -> Diagnose:
    """Return the duty of a new leader."""
    settings = msgspec.structs.replace(settings_of(), doctor=DoctorSettings(**thresholds))
    return Diagnose(Beside(world), settings)


async def healthy(world: World) -> None:
    """Let one worker live, lead and know the task, and the journals be numbered."""
    await world.register("w1")
    await world.store.registry.lead(LeadRequest(scope=ALL, name="duties", worker="w1", lease=DAY))


async def told(world: World) -> list[tuple[str, str]]:
    """Return kind and subject of what was appended."""
    return [(one.kind, one.subject) for one in await world.appended("events")]


async def test_a_problem_is_an_event_when_it_begins_and_when_it_has_ended(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """And a warning in the log of the leader, once."""
    caplog.set_level(logging.WARNING)
    await healthy(world)
    duty = duty_of(world, max_ready=1, min_clients=0)
    await world.enqueue()
    await duty(world.store)
    before = await told(world)
    await world.enqueue()
    assert await duty(world.store) == EVERY == MINUTE
    await duty(world.store)
    assert (await told(world))[len(before) :] == [("finding", "depth queue default")]
    (logged,) = [one for one in caplog.records if one.__dict__.get("check") == "depth"]
    assert logged.getMessage() == "queue default: 2 jobs are ready, more than 1."
    await world.claim_one()
    await duty(world.store)
    assert (await told(world))[len(before) + 1 :] == [("finding_ended", "depth queue default")]


async def test_a_duty_that_fails_is_told_once_and_when_it_is_done_again(world: World) -> None:
    """S104: by its name; how often it has failed meanwhile makes no other event."""
    await healthy(world)
    duty, before = duty_of(world, min_clients=0), await told(world)

    async def report(failures: int) -> None:
        one = DutyReport(
            name="prune",
            worker="w1",
            began_at=0,
            took=0,
            late=0,
            next_at=world.now,
            failures=failures,
            error="x",
        )
        reports = DutyReports(world.now, (one,))
        lead = LeadRequest(scope=ALL, name="duties", worker="w1", lease=DAY, reports=reports)
        await world.store.registry.lead(lead)
        await duty(world.store)

    for failures in (1, 2):
        await report(failures)
    found = [one for one in await told(world) if one not in before]
    assert [one for one in found if "duties" in one[1]] == [("finding", "duties prune")]
    await report(0)
    assert (await told(world))[-1] == ("finding_ended", "duties prune")


@pytest.mark.parametrize("is_numbered", [True, False])
async def test_a_new_leader_repeats_nothing_and_forgets_nothing(world: World, *, is_numbered: bool) -> None:
    """It reads what was told, also what has no number yet."""
    await healthy(world)
    await world.enqueue_many(2)
    await duty_of(world, max_ready=1, min_clients=0)(world.store)
    if is_numbered:
        await tell(world)
    before = await told(world)
    await duty_of(world, max_ready=1, min_clients=0)(world.store)
    assert await told(world) == before
    await world.claim_one()
    await duty_of(world, max_ready=1, min_clients=0)(world.store)
    assert ("finding_ended", "depth queue default") in (await told(world))[len(before) :]


async def test_a_leader_that_was_replaced_for_a_while_reads_what_the_other_told(world: World) -> None:
    """It does not tell once more what another has told meanwhile."""
    await healthy(world)
    first, second = (duty_of(world, max_ready=1, min_clients=0) for _ in range(2))
    await first(world.store)
    await world.enqueue_many(2)
    await second(world.store)
    before = await told(world)
    world.advance(3 * MINUTE // SECOND)
    await world.beat("w1")
    await first(world.store)
    assert ("finding", "depth queue default") not in (await told(world))[len(before) :]


async def test_too_few_workers_are_critical_while_jobs_are_ready(world: World) -> None:
    """A scheduler alone, with a queue that fills."""
    duty = duty_of(world, min_clients=0)
    await duty(world.store)
    assert ("finding", "workers") in await told(world)
    await world.enqueue()
    await duty(world.store)
    assert ("finding_critical", "workers") in await told(world)
    wanted = duty_of(world, min_workers=0, min_clients=0)
    await wanted(world.store)
    assert ("finding_ended", "workers") in await told(world)


async def test_past_findings_are_read_with_their_times(world: World) -> None:
    """The newest first; a problem that lasts has no end."""
    await healthy(world)
    duty = duty_of(world, max_ready=1, min_clients=0)
    await world.enqueue_many(2)
    began = world.now
    await duty(world.store)
    await tell(world)
    (lasting,) = [one for one in await past_findings(world.store) if one.finding.check == "depth"]
    assert (lasting.began_at, lasting.told_at, lasting.ended_at) == (began, began, None)
    world.advance(60)
    await world.beat("w1")
    await world.claim_one()
    await duty(world.store)
    (past,) = [one for one in await past_findings(world.store) if one.finding.check == "depth"]
    assert (past.began_at, past.ended_at) == (began, world.now)
    assert past.finding.what == "queue default: 2 jobs are ready, more than 1."
