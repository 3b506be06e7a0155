"""A pass of a duty by hand: it does what the duty does, beside whoever leads, and is audited (S104)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fairlane import Fairlane, State, TenantMismatch
from fairlane.duties.by_hand import run_duty
from fairlane.model.duty_report import DUTIES
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LeadRequest
from tests.app.world import World, note


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty store in memory, which another process leads."""
    made = World()
    lead = LeadRequest(scope=Scope.all(), name="duties", worker="w1", lease=60 * SECOND)
    await made.oracle.registry.lead(lead)
    yield made
    for app in made.apps:
        await app.aclose()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application on it."""
    return world.app()


async def test_a_pass_does_what_the_duty_does_and_is_audited(app: Fairlane, world: World) -> None:
    """It says what it did; the audit says who asked for it, and why."""
    job = await app.task(name="work")(note).using(tenant="acme", expires_in=1).aenqueue("x")
    world.clock.advance(2)
    done = await run_duty(app, "expire", note="look", who="ann")
    assert (done.name, done.did, done.more) == ("expire", "1 cancelled", False)
    assert (await job.arefresh()).state is State.CANCELLED
    assert (await run_duty(app, "expire")).did == ""
    first = (await app.audit.afind()).items[-1]
    assert (first.kind, first.subject) == ("duties.run", "duty expire")
    assert (first.note, first.actor) == ("look", "ann")


async def test_it_takes_no_lead_and_reports_nothing(app: Fairlane) -> None:
    """What the leader reports stays its own."""
    for name in DUTIES:
        await run_duty(app, name)
    assert await app.duties.aleader() == "w1"
    assert {one.worker for one in await app.duties.alist()} == {None}


async def test_a_name_that_no_duty_has_is_refused(app: Fairlane) -> None:
    """With the nearest one; nothing is audited."""
    with pytest.raises(LookupError, match=r"there is no duty 'prun'; did you mean 'prune'\?"):
        await run_duty(app, "prun")
    assert list(await app.audit.afind()) == []


async def test_a_tenant_can_neither_see_nor_do_them(app: Fairlane) -> None:
    """S9: they serve all tenants."""
    with app.tenant("acme"):
        for call in (app.duties.alist, app.duties.aleader, lambda: run_duty(app, "prune")):
            with pytest.raises(TenantMismatch):
                await call()
