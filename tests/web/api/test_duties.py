"""Duties over HTTP: who does them, how they went, a pass by hand."""

from __future__ import annotations

from fairlane.model.duty_report import DUTIES, DutyReport, DutyReports
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LeadRequest
from tests.app.world import World
from tests.web.api.callers import Callers


async def lead(world: World) -> None:
    """Let a worker lead and report that a duty fails, and is late."""
    now = world.clock.now()
    report = DutyReport(
        name="prune",
        worker="w1",
        began_at=now - 10 * SECOND,
        took=SECOND // 2,
        late=SECOND,
        next_at=now - 3 * SECOND,
        failures=2,
        error="KeyError: 'x'",
    )
    request = LeadRequest(
        scope=Scope.all(),
        name="duties",
        worker="w1",
        lease=60 * SECOND,
        reports=DutyReports(now, (report,)),
    )
    await world.oracle.registry.lead(request)


async def test_every_duty_is_listed_with_its_last_pass(callers: Callers, world: World) -> None:
    """Those without one, too; the lag is the greater of how late it began and how overdue the next is."""
    answer = await callers.get("/duties")
    assert answer["leader"] is None
    assert [one["name"] for one in answer["items"]] == sorted(DUTIES)
    assert {one["last_at"] for one in answer["items"]} == {None}
    await lead(world)
    answer = await callers.get("/duties")
    assert answer["leader"] == "w1"
    prune = next(one for one in answer["items"] if one["name"] == "prune")
    assert (prune["worker"], prune["took"], prune["lag"]) == ("w1", 0.5, 3.0)
    assert (prune["failures"], prune["error"]) == (2, "KeyError: 'x'")


async def test_a_pass_is_made_and_audited(callers: Callers) -> None:
    """In the server, whoever leads."""
    done = await callers.post("/duties/prune/run", {"note": "make room"})
    assert (done["name"], done["did"], done["more"]) == ("prune", "", False)
    (entry,) = (await callers.get("/audit"))["items"]
    assert (entry["kind"], entry["subject"], entry["note"]) == ("duties.run", "duty prune", "make room")


async def test_an_unknown_duty_is_not_found(callers: Callers) -> None:
    """And nothing is audited."""
    answer = await callers.ask("POST", "/duties/rest/run", json={"note": "x"})
    assert answer.status_code == 404
    assert (await callers.get("/audit"))["items"] == []
