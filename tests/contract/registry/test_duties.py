"""Who leads, and what a leader reports of its duties, can be read by everybody (S104)."""

from __future__ import annotations

from typing import Final

from fairlane.model.duty_report import DutyReport, DutyReports
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import DutiesReply, DutiesRequest, LeadReply, LeadRequest, LeaveRequest
from tests.contract.world import ALL, World

LEASE: Final = 10 * SECOND


def report(worker: str = "w1", **values: object) -> DutyReport:
    """Return what a worker says of a duty."""
    plain = DutyReport(name="prune", worker=worker, began_at=1, took=2, late=3, next_at=4)
    return DutyReport(**{**{name: getattr(plain, name) for name in plain.__struct_fields__}, **values})


REPORTS: Final = DutyReports(
    2**52, (report(did="3 succeeded removed"), report(name="ünder", failures=2, error="KeyError: ”"))
)


async def lead(
    world: World, worker: str = "w1", reports: DutyReports | None = None, name: str = "duties"
) -> LeadReply:
    """Ask for the lead, and report."""
    request = LeadRequest(scope=ALL, name=name, worker=worker, lease=LEASE, reports=reports)
    return await world.store.registry.lead(request)


async def duties(world: World, name: str = "duties") -> DutiesReply:
    """Read what is known of a lead."""
    return await world.store.registry.duties(DutiesRequest(scope=ALL, name=name))


async def test_of_a_lead_that_nobody_had_nothing_is_known(world: World) -> None:
    """S104: neither a leader nor a report."""
    assert await duties(world) == DutiesReply(now=world.now)


async def test_the_leader_is_told_until_its_lead_ends(world: World) -> None:
    """S104: by the store's clock; from that very instant on nobody leads."""
    taken = await lead(world)
    world.advance(9.999_999)
    assert await duties(world) == DutiesReply(now=world.now, leader=taken)
    world.advance(0.000_001)
    assert (await duties(world)).leader is None


async def test_what_the_leader_reports_is_read_as_it_was_sent(world: World) -> None:
    """S104: with every field, and after the lead has ended, too."""
    taken = await lead(world, reports=REPORTS)
    assert await duties(world) == DutiesReply(now=world.now, leader=taken, reports=REPORTS)
    world.advance(10)
    assert (await duties(world)).reports == REPORTS


async def test_a_report_replaces_the_one_before_and_none_leaves_it(world: World) -> None:
    """S104: a leader that has nothing to say yet does not hide what the one before has said."""
    await lead(world, reports=REPORTS)
    await lead(world)
    assert (await duties(world)).reports == REPORTS
    later = DutyReports(7, (report(failures=1),))
    await lead(world, reports=later)
    assert (await duties(world)).reports == later


async def test_who_does_not_lead_reports_nothing(world: World) -> None:
    """S104: a leader that was slow cannot write over its successor's report."""
    await lead(world, "w1")
    await lead(world, "w2", REPORTS)
    assert (await duties(world)).reports == DutyReports()
    world.advance(10)
    await lead(world, "w2", REPORTS)
    await lead(world, "w1", DutyReports(9))
    assert (await duties(world)).reports == REPORTS


async def test_leads_of_other_names_have_reports_of_their_own(world: World) -> None:
    """S104: and leaving ends a lead, not what was reported."""
    await lead(world, reports=REPORTS)
    await lead(world, "w2", DutyReports(5), "relay")
    assert (await duties(world, "relay")).reports == DutyReports(5)
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    after = await duties(world)
    assert (after.leader, after.reports) == (None, REPORTS)
