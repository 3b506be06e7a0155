"""Operators are told once of too many dead letters, and once a day of those that expire (S75, S76)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.duties.journals.pending_letters import EXPIRY_WITHIN, RECOUNT_EVERY
from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.retention import Retention
from tests.contract.world import World
from tests.duties.journals.crew import die, numbered, settle_down, tell, teller

QUIET_FOR = 11
"""Seconds after which no fold is open."""


async def alerts(world: World) -> list[object]:
    """Return the bodies of all alerts."""
    found = await numbered(world, kinds=frozenset({"dlq_alert"}))
    return [msgspec.json.decode(one.entry.body) for one in found]


async def reviewed(world: World, number: int) -> None:
    """Decide about so many dead letters."""
    letters = (await world.letters(review="pending"))[:number]
    await world.review("resolve", *(one.job.id for one in letters))


async def test_one_alert_says_that_a_threshold_was_passed(world: World) -> None:
    """Not at the threshold, and not again at each death after it."""
    await die(world, 3)
    await tell(world, alert_above=3)
    assert await alerts(world) == []
    await die(world)
    await tell(world, alert_above=3)
    assert await alerts(world) == [{"count": 4, "threshold": 3}]
    await die(world, 2)
    await tell(world, alert_above=3)
    assert len(await alerts(world)) == 1


async def test_the_alert_is_critical_and_concerns_no_tenant(world: World) -> None:
    """It is one event, whoever the dead letters belong to."""
    await die(world)
    await die(world, tenant="bcme")
    await tell(world, alert_above=1)
    (found,) = await numbered(world, kinds=frozenset({"dlq_alert"}))
    assert (found.entry.tenant, found.entry.count) == (None, 1)


async def test_the_next_crossing_makes_the_next_alert(world: World) -> None:
    """After decisions have brought the number back to the threshold."""
    await die(world, 4)
    await tell(world, alert_above=3)
    await reviewed(world, 1)
    await tell(world, alert_above=3)
    await die(world, 2)
    await tell(world, alert_above=3)
    assert await alerts(world) == [{"count": 4, "threshold": 3}, {"count": 5, "threshold": 3}]


async def test_a_letter_that_runs_again_waits_for_no_decision(world: World) -> None:
    """It counts no more."""
    await die(world, 2)
    await tell(world, alert_above=1)
    (one, _) = await world.letters()
    await world.rerun(one.job)
    await tell(world, alert_above=1)
    await world.claim_one()
    await die(world)
    await tell(world, alert_above=1)
    assert len(await alerts(world)) == 2


async def test_letters_that_retention_removes_end_the_alert_as_well(world: World) -> None:
    """No event tells of it, so it is looked at again while an alert is on."""
    duty = teller(alert_above=1)
    await die(world, 2)
    await settle_down(world, duty)
    world.advance(DAY / SECOND)
    await world.prune(dead=DAY)
    world.advance(RECOUNT_EVERY / SECOND)
    await settle_down(world, duty)
    await die(world, 2)
    await settle_down(world, duty)
    assert len(await alerts(world)) == 2


async def test_without_a_threshold_there_is_no_alert(world: World) -> None:
    """The setting says `none`."""
    await die(world, 60)
    await tell(world, alert_above=None)
    assert await alerts(world) == []


# ── expiry ───────────────────────────────────────────────────────────────────


async def expiring(world: World) -> list[int]:
    """Return the counts of all events about letters that expire."""
    found = await numbered(world, kinds=frozenset({"dead_letters_expire"}))
    return [one.entry.count for one in found]


async def test_operators_are_told_three_days_before_letters_expire(world: World) -> None:
    """Once a day, while there are any that nobody has decided about."""
    times = Retention(dead=30 * DAY)
    await die(world, 3)
    await reviewed(world, 1)
    world.advance((30 * DAY - EXPIRY_WITHIN - 1) / SECOND)
    await tell(world, retention=times)
    assert await expiring(world) == []
    for _ in range(4):
        world.advance(DAY / SECOND / 2)
        await tell(world, retention=times)
    assert await expiring(world) == [2, 2]


@pytest.mark.parametrize(
    ("times", "count"),
    [
        (Retention(dead=30 * DAY), 0),
        (Retention(dead=10 * DAY), 4),
        (Retention(dead=30 * DAY, queues={"bulk": 10 * DAY}), 2),
        (Retention(dead=10 * DAY, queues={"bulk": 30 * DAY}), 2),
        (Retention(dead=10 * DAY, queues={"bulk": 30 * DAY}, tenants={"acme": 30 * DAY}), 1),
        (Retention(dead=30 * DAY, queues={"bulk": 10 * DAY}, tenants={"acme": 30 * DAY}), 1),
        (Retention(dead=30 * DAY, tenants={"acme": 10 * DAY}), 2),
        (Retention(dead=30 * DAY, tasks={"noop": 10 * DAY}, tenants={"acme": 30 * DAY}), 4),
        (Retention(dead=10 * DAY, queues={"bulk": 10 * DAY}, tasks={"noop": 30 * DAY}), 0),
        (Retention(dead=10 * DAY, tenants={"acme": 10 * DAY}, tasks={"other": 30 * DAY}), 4),
    ],
)
async def test_the_most_specific_retention_counts(world: World, times: Retention, count: int) -> None:
    """Of a task, else of a tenant, else of a queue, else of all dead letters (S103)."""
    for tenant in ("acme", "bcme"):
        for queue in ("default", "bulk"):
            await die(world, tenant=tenant, queue=queue)
    world.advance((7 * DAY + SECOND) / SECOND)
    await tell(world, retention=times)
    assert sum(await expiring(world)) == count


async def test_what_is_told_to_expire_is_what_pruning_removes(world: World) -> None:
    """Three days later, by the same settings."""
    await die(world, 2)
    world.advance(8 * DAY / SECOND)
    await die(world)
    await tell(world, retention=Retention(dead=10 * DAY))
    (count,) = await expiring(world)
    world.advance(EXPIRY_WITHIN / SECOND)
    assert (await world.prune(dead=10 * DAY)).jobs == count == 2


async def test_a_new_leader_tells_nothing_again(world: World) -> None:
    """Neither the alert nor the expiry: what was told is stored with the events."""
    times = Retention(dead=DAY)
    await die(world, 3)
    for _ in range(3):
        await tell(world, alert_above=2, retention=times)
        await die(world)
        world.advance(QUIET_FOR)
    assert (len(await alerts(world)), await expiring(world)) == (1, [3])
