"""Description A, what operators are told: limits, and dead letters that await review (S76)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane import Fail
from fairlane.app.journal_settings import DeadLetterSettings
from fairlane.app.settings import settings_of
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.store.contract.dead import DeadRequest, ReviewRequest
from fairlane.store.contract.journal import EntriesRequest
from tests.acceptance.presets import Preset, isolation
from tests.acceptance.world import ALL, World


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description A, in force."""
    return await world.open(isolation(world.url))


async def published(world: World, kind: str, *, alert_above: int = 50) -> list[tuple[str | None, Any]]:
    """Let the duty tell what has happened; return organisation and content of the events of a kind."""
    settings = msgspec.structs.replace(
        settings_of(), dead_letters=DeadLetterSettings(alert_above=alert_above)
    )
    tell = TellEvents(settings)
    while await tell(world.store) == 0:
        pass
    request = EntriesRequest(scope=ALL, journal="events", kinds=frozenset({kind}))
    entries = (await world.store.journal.entries(request)).entries
    return [(one.entry.tenant, msgspec.json.decode(one.entry.body)) for one in entries]


async def die(world: World, preset: Preset, number: int) -> None:
    """Let so many jobs move to the dead letters."""
    await world.fill(preset["email.send"], number)
    for claim in await world.claim(number):
        await world.fail_claim(claim, Fail("the mailbox is gone"))


async def test_000_tm_2_the_501st_waiting_job_is_an_event_and_the_500th_is_none(
    world: World, preset: Preset
) -> None:
    """With the organisation and the queue."""
    await world.fill(preset["email.send"], 500)
    assert await published(world, "job_limit_warning") == []
    await preset["email.send"].using(tenant="acme", created_by="ann").aenqueue()
    ((tenant, body),) = await published(world, "job_limit_warning")
    assert (tenant, body["queue"]) == ("acme", "default")
    assert (body["waiting"], body["limit"], body["created_by"]) == (501, 500, "ann")


@pytest.mark.parametrize(("alert_above", "quiet"), [(50, 50), (49, 49)])
async def test_000_dl_4_the_51st_entry_that_awaits_review_is_an_alert(
    world: World, preset: Preset, alert_above: int, quiet: int
) -> None:
    """Once; by setting, the 50th is."""
    await die(world, preset, quiet)
    assert await published(world, "dlq_alert", alert_above=alert_above) == []
    await die(world, preset, 1)
    alert = (None, {"count": quiet + 1, "threshold": alert_above})
    assert await published(world, "dlq_alert", alert_above=alert_above) == [alert]
    await die(world, preset, 1)
    assert await published(world, "dlq_alert", alert_above=alert_above) == [alert]


async def test_000_dl_5_entries_that_were_reviewed_do_not_count(world: World, preset: Preset) -> None:
    """Sixty died, and ten of them were decided about before the duty looked."""
    await die(world, preset, 60)
    letters = (await world.store.dead.find(DeadRequest(scope=ALL, limit=10))).letters
    ids = tuple(one.job.id for one in letters)
    await world.store.dead.review(ReviewRequest(scope=ALL, ids=ids, action="resolve", who="ann"))
    assert await published(world, "dlq_alert") == []
    await die(world, preset, 1)
    assert await published(world, "dlq_alert") == [(None, {"count": 51, "threshold": 50})]
