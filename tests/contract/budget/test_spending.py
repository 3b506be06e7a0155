"""What jobs have spent (S113), who it was, what is told of it (S114), and periods (S115)."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.job import Claim
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.budget import MAX_SPENDERS, OTHERS
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.budgets import Spender
from tests.contract.world import World, failed


async def _claim(world: World, estimate: int = 40, **rules: object) -> Claim:
    """Let one job of acme run under the budget."""
    await world.put_budget("ai", "tag", estimate=estimate, **rules)
    await world.enqueue(task="tag", created_by="ann")
    return await world.claim_one()


# ── once for each claim ──────────────────────────────────────────────────────


async def test_spend_travels_with_renewals_as_the_sum_so_far(world: World) -> None:
    """S113: what is spent is no longer reserved; beyond the estimate, more is counted."""
    claim = await _claim(world)
    for spent, account in ((10, (10, 30)), (10, (10, 30)), (35, (35, 5)), (60, (60, 0))):
        await world.renew(claim, spent=spent)
        assert await world.account("ai") == account
    await world.settle(claim, spent=70)
    assert await world.account("ai") == (70, 0)


async def test_a_renewal_that_comes_late_takes_nothing_back(world: World) -> None:
    """S113: a sum only grows."""
    claim = await _claim(world)
    await world.renew(claim, spent=30)
    await world.renew(claim, spent=20)
    assert await world.account("ai") == (30, 10)
    await world.settle(claim, spent=25)
    assert await world.account("ai") == (30, 0)


async def test_a_settlement_sent_twice_spends_once(world: World) -> None:
    """S113: the second is stale, and finds nothing to count."""
    claim = await _claim(world)
    verdict = world.verdict(claim, spent=50)
    assert (await world.settle_reply(verdict)).settled
    assert (await world.settle_reply(verdict)).stale
    assert await world.account("ai") == (50, 0)


async def test_every_attempt_spends_for_itself(world: World) -> None:
    """S113: a retry is another fence."""
    claim = await _claim(world, ceiling=1_000)
    await world.settle(claim, failed(), spent=30)
    world.advance(2)
    await world.settle(await world.claim_one(), spent=50)
    assert await world.account("ai") == (80, 0)


async def test_a_lost_claim_counts_its_estimate_until_its_worker_reports(world: World) -> None:
    """S113, S38: the worker may have spent all of it; its stale settlement says what it was."""
    claim = await _claim(world)
    await world.renew(claim, spent=10)
    await world.lose()
    assert await world.account("ai") == (40, 0)
    assert (await world.settle_reply(world.verdict(claim, spent=15))).stale
    assert await world.account("ai") == (15, 0)
    assert (await world.settle_reply(world.verdict(claim, spent=90))).stale
    assert await world.account("ai") == (15, 0)


async def test_a_stale_settlement_counts_what_exceeds_the_estimate(world: World) -> None:
    """S113: also when another worker runs the job by now, with a reservation of its own."""
    claim = await _claim(world, ceiling=1_000)
    await world.lose()
    again = await world.claim_one(worker="w2")
    assert (await world.settle_reply(world.verdict(claim, spent=70))).stale
    assert await world.account("ai") == (70, 40)
    await world.settle(again, worker="w2", spent=5)
    assert await world.account("ai") == (75, 0)


@pytest.mark.parametrize("how", ["failed", "returned", "dead"])
async def test_a_revoked_claim_counts_its_estimate_too(world: World, how: str) -> None:
    """S113, S72: its handler may still be spending."""
    claim = await _claim(world)
    await world.revoke(claim.job.id, how=how)  # type: ignore[arg-type]
    assert await world.account("ai") == (40, 0)
    await world.settle_reply(world.verdict(claim, spent=0))
    assert await world.account("ai") == (0, 0)


async def test_a_stuck_claim_counts_its_estimate_too(world: World) -> None:
    """S113, S31: as any that its worker did not end."""
    await world.put_budget("ai", "tag", estimate=40)
    await world.enqueue(task="tag", stuck_after=SECOND)
    claim = await world.claim_one(lease=600 * SECOND)
    world.advance(2)
    assert len((await world.take_stuck()).stuck) == 1
    assert await world.account("ai") == (40, 0)
    await world.settle_reply(world.verdict(claim, spent=41))
    assert await world.account("ai") == (41, 0)


async def test_what_a_lost_claim_gives_back_wakes_who_waits(world: World) -> None:
    """S113, S59: room is room, wherever it comes from."""
    claim = await _claim(world, estimate=100)
    await world.enqueue("globex", task="tag")
    await world.lose()
    assert await world.claim(9) == []
    await world.settle_reply(world.verdict(claim, spent=0))
    assert len(await world.claim(1)) == 1


async def test_another_tenants_scope_spends_nothing(world: World) -> None:
    """S9, S113: as if the claim did not exist."""
    claim = await _claim(world)
    await world.settle_reply(world.verdict(claim, spent=30), scope=Scope("globex"))
    assert await world.account("ai") == (0, 40)
    await world.settle_reply(world.verdict(claim, spent=30), scope=Scope("acme"))
    assert await world.account("ai") == (30, 0)


async def test_a_worker_that_asks_for_more_gets_the_room_that_it_has_just_left(world: World) -> None:
    """S35, S59: settlement and claim in one call."""
    claim = await _claim(world, estimate=100)
    await world.enqueue(task="tag")
    reply = await world.settle_reply(world.verdict(claim, spent=0), claim=world.claim_request(1))
    assert reply.claimed is not None
    assert len(reply.claimed.claims) == 1


# ── who has spent what ───────────────────────────────────────────────────────


async def test_spend_is_known_by_task_tenant_and_originator(world: World) -> None:
    """S114: most first; a tenant sees its own."""
    await world.put_budget("ai", "tag", "sum", ceiling=10_000)
    for tenant, task, by, spent in (
        ("acme", "tag", "ann", 10),
        ("acme", "tag", "ann", 15),
        ("acme", "sum", None, 30),
        ("globex", "tag", "bob", 20),
        ("globex", "tag", "eve", 0),
    ):
        await world.enqueue(tenant, task=task, created_by=by)
        await world.settle(await world.claim_one(), spent=spent)
    reply = await world.spend("ai")
    assert reply.spent == (
        (Spender("sum", "acme", ""), 30),
        (Spender("tag", "acme", "ann"), 25),
        (Spender("tag", "globex", "bob"), 20),
    )
    assert reply.periods == (reply.starts_at,)
    assert (await world.spend("ai", Scope("globex"))).spent == ((Spender("tag", "globex", "bob"), 20),)


async def test_spend_of_earlier_periods_is_known_for_a_while(world: World) -> None:
    """S114: by their first instants, last first; the oldest go when a period begins."""
    await world.put_budget("ai", "tag")
    for _ in range(2):
        await world.enqueue(task="tag")
        await world.settle(await world.claim_one(), spent=7)
        world.advance(DAY // SECOND)
    first, last = sorted((await world.spend("ai")).periods)
    assert last - first == DAY
    assert (await world.spend("ai", starts_at=first)).spent == ((Spender("tag", "acme", ""), 7),)
    world.advance(401 * DAY // SECOND)
    await world.enqueue(task="tag")
    await world.settle(await world.claim_one(), spent=9)
    assert len((await world.spend("ai")).periods) == 1


async def test_those_beyond_a_thousand_are_counted_together(world: World) -> None:
    """S114: the breakdown is bounded, its sum is not."""
    await world.put_budget("ai", "tag", ceiling=10**9)
    await world.send(*(world.new(task="tag", created_by=f"u{n}") for n in range(MAX_SPENDERS + 3)))
    for _ in range(0, MAX_SPENDERS + 3, 100):
        claims = await world.claim(100)
        await world.settle_reply(*(world.verdict(claim, spent=1) for claim in claims))
    reply = await world.spend("ai")
    assert len(reply.spent) == MAX_SPENDERS + 1
    assert dict(reply.spent)[Spender(OTHERS, OTHERS, OTHERS)] == 3
    assert await world.account("ai") == (MAX_SPENDERS + 3, 0)


# ── events ───────────────────────────────────────────────────────────────────


async def _told(world: World) -> list[NewEntry]:
    return [one for one in await world.appended("events") if one.kind.startswith("budget")]


async def _spend(world: World, *amounts: int) -> None:
    for spent in amounts:
        await world.enqueue(task="tag")
        await world.settle(await world.claim_one(), spent=spent)


async def test_each_share_is_told_once_in_a_period(world: World) -> None:
    """S114: at 80 and at 100 percent; and again in the next period."""
    await world.put_budget("ai", "tag", alert_at=(80, 100))
    await _spend(world, 79)
    assert await _told(world) == []
    start = world.now - world.now % DAY
    await _spend(world, 2, 4, 20)
    first, second = await _told(world)
    assert (first.kind, second.kind) == ("budget_alert", "budget_spent")
    assert (first.tenant, first.subject) == (None, "budget ai")
    assert msgspec.json.decode(first.body) == {
        "budget": "ai",
        "ceiling": 100,
        "currency": "USD",
        "period_end": start + DAY,
        "period_start": start,
        "share": 80,
        "spent": 81,
    }
    world.advance(DAY // SECOND)
    await _spend(world, 80)
    assert [one.kind for one in await _told(world)] == ["budget_alert", "budget_spent", "budget_alert"]


async def test_a_job_that_finds_the_budget_spent_tells_of_it(world: World) -> None:
    """S114: below the ceiling, but with no room for another estimate: by whoever is refused or waits."""
    await world.put_budget("ai", "tag", estimate=30, alert_at=(80, 100), on_spent="fail")
    await _spend(world, 60)
    assert await _told(world) == []
    await world.override(SubjectKind.BUDGET, "ai", PolicyChange(ceiling=85))
    await world.enqueue(task="tag")
    assert (await world.claim_one()).is_over_budget
    assert [one.kind for one in await _told(world)] == ["budget_alert", "budget_spent"]


async def test_the_event_of_a_tenants_own_account_is_that_tenants(world: World) -> None:
    """S114, S9: it is told to it, and names it."""
    await world.put_budget("ai", "tag", per_tenant=True, alert_at=(50,))
    await _spend(world, 50)
    (told,) = await _told(world)
    assert (told.tenant, told.kind) == ("acme", "budget_alert")


async def test_a_renewal_tells_as_well(world: World) -> None:
    """S114: nobody waits for the end of a long job."""
    claim = await _claim(world, alert_at=(50,))
    await world.renew(claim, spent=55)
    assert len(await _told(world)) == 1
    await world.settle(claim, spent=56)
    assert len(await _told(world)) == 1


# ── periods ──────────────────────────────────────────────────────────────────


async def test_a_new_period_begins_with_nothing_spent(world: World) -> None:
    """S115: what still runs keeps its reservation, and spends in the period in which it reports."""
    claim = await _claim(world)
    await world.enqueue(task="tag")
    second = await world.claim_one()
    await world.settle(second, spent=30)
    await world.renew(claim, lease=2 * DAY, spent=20)
    assert await world.account("ai") == (50, 20)
    world.advance(DAY // SECOND)
    assert await world.account("ai") == (0, 20)
    await world.settle(claim, spent=25)
    assert await world.account("ai") == (5, 0)


async def test_what_was_counted_in_an_ended_period_is_not_given_back_in_the_next(world: World) -> None:
    """S113, S115: nothing is given twice."""
    claim = await _claim(world)
    await world.lose()
    assert await world.account("ai") == (40, 0)
    world.advance(DAY // SECOND)
    await world.settle_reply(world.verdict(claim, spent=10))
    assert await world.account("ai") == (0, 0)


@pytest.mark.parametrize(
    ("per", "timezone", "ends"),
    [
        ("day", "Europe/Berlin", "2026-03-28T23:00:00"),
        ("week", "UTC", "2026-03-30T00:00:00"),
        ("week", "Europe/Berlin", "2026-03-29T22:00:00"),
        ("month", "America/New_York", "2026-04-01T04:00:00"),
    ],
)
async def test_periods_are_of_the_calendar_of_the_zone(
    world: World, per: str, timezone: str, ends: str
) -> None:
    """S115: also where the clocks change in between, on the 29th of March 2026 in Berlin."""
    at = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    world.advance(at - world.now / SECOND)
    await world.put_budget("ai", "tag", per=per, timezone=timezone)
    await world.enqueue(task="tag")
    await world.claim_one()
    (account,) = (await world.accounts("ai")).values()
    assert datetime.fromtimestamp(account.ends_at / SECOND, UTC).isoformat()[:19] == ends


async def test_a_period_that_has_begun_keeps_its_end(world: World) -> None:
    """S115: another calendar is that of the next period; nothing is given twice."""
    await _spend_of_a_day(world)
    await world.put_budget("ai", "tag", per="month")
    (before,) = (await world.accounts("ai")).values()
    assert (before.spent, before.ends_at - before.starts_at) == (30, DAY)
    world.advance(DAY // SECOND)
    (after,) = (await world.accounts("ai")).values()
    assert after.spent == 0
    assert after.ends_at - after.starts_at > 27 * DAY


async def test_a_period_without_a_known_next_one_goes_on(world: World) -> None:
    """S115: rather than spend twice; a worker that starts writes the calendar again."""
    await _spend_of_a_day(world)
    world.advance(900 * DAY // SECOND)
    assert await world.account("ai") == (30, 0)
    await world.put_budget("ai", "tag")
    assert await world.account("ai") == (0, 0)


async def _spend_of_a_day(world: World) -> None:
    await world.put_budget("ai", "tag")
    await _spend(world, 30)
