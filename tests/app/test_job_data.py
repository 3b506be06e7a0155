"""Arguments, progress and logs of a job, as Python callers see them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane import Progress, State
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.retry.decision import Snoozed, Succeeded, decide_settlement
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import Renewal, RenewRequest, SettleRequest
from fairlane.store.contract.upkeep import ForgetRequest
from tests.app.world import WORKER, World


class Colour(Enum):
    """What a task names."""

    RED = "r"
    GREEN = "g"


class Mode(Flag):
    """Parts that go together."""

    READ = 1
    RUN = 2


def paint(colour: Colour, modes: Mode, when: datetime, extra: Any) -> None:
    """Take what JSON has no types for."""


WHEN = datetime(2026, 7, 1, 10, tzinfo=UTC)
EXTRA = {
    "days": [date(2026, 1, 2)],
    "price": Decimal("1.20"),
    "every": timedelta(hours=1),
    "id": UUID(int=7),
    "raw": b"\x00",
    "pair": (1, {2, 3}),
}
GIVEN: dict[str, Any] = {"colour": Colour.RED, "modes": Mode.READ | Mode.RUN, "when": WHEN, "extra": EXTRA}


async def test_arguments_come_back_as_the_handler_would_get_them(world: World) -> None:
    """Types and values, also from a job that was looked up; and each look gives values of its own."""
    app = world.app()
    task = app.task(name="paint")(paint).using(tenant="acme")
    made = await task.aenqueue(**GIVEN)
    for job in (made, await app.jobs.aget(made.id), await made.arefresh()):
        assert job.arguments == GIVEN
        assert job.arguments["colour"] is Colour.RED
    made.arguments["extra"]["days"].append("mine")
    assert made.arguments == GIVEN
    with pytest.raises(TypeError):
        made.arguments["when"] = None  # type: ignore[index]


async def test_where_the_task_is_not_known_its_enums_are_text(world: World) -> None:
    """Everything else is tagged in the payload itself."""
    made = await world.app().task(name="paint")(paint).using(tenant="acme").aenqueue(**GIVEN)
    job = await world.app().jobs.aget(made.id)
    assert job.arguments == {**GIVEN, "colour": "Colour.RED", "modes": "Mode.READ|RUN"}


async def test_arguments_are_those_of_the_version_that_was_enqueued(world: World) -> None:
    """What is stored is shown, a member that is gone too; upcasts are for the handler."""
    first = world.app()
    made = await first.task(name="paint")(paint).using(tenant="acme").aenqueue(**GIVEN)

    class Colour(Enum):
        BLUE = "b"

    Colour.__qualname__ = "Colour"

    def newer(colour: Any, when: datetime) -> None: ...

    newer.__annotations__["colour"] = Colour
    app = world.app()
    task = app.task(name="paint", version=2)(newer)
    task.upcast(1)(lambda old: {"colour": Colour.BLUE, "when": old["when"]})
    arguments = (await app.jobs.aget(made.id)).arguments
    assert (arguments["colour"], arguments["when"], set(arguments)) == ("Colour.RED", WHEN, set(GIVEN))


async def test_arguments_that_are_gone_or_spoilt(world: World) -> None:
    """A forgotten tenant's are empty, as its tags are; bytes that have changed are not shown."""
    app = world.app()
    made = await app.task(name="paint")(paint).using(tenant="acme").aenqueue(**GIVEN)
    books = world.oracle.jobs._core.books.jobs
    books[made.id] = msgspec.structs.replace(books[made.id], checksum=7)
    with pytest.raises(ValueError, match="checksum"):
        _ = (await made.arefresh()).arguments
    await made.acancel()
    await world.oracle.upkeep.forget(ForgetRequest(scope=Scope("acme"), reason="they left", who="me"))
    assert (await made.arefresh()).arguments == {}


async def test_a_jobs_repr_shows_nothing_that_it_carries(world: World) -> None:
    """S6: it ends up in logs and in the output of tests."""
    app = world.app()
    job = await app.task(name="fax")(note).using(tenant="acme").aenqueue("hunter2")
    claim = await world.claim()
    await renew(world, claim, Progress(0.5, "hunter2"))
    assert "hunter2" not in repr(await job.arefresh())
    await settle(world, claim, "hunter2")
    await world.fail("hunter2")
    job = await job.arefresh()
    assert job.arguments == {"secret": "hunter2"}
    assert "hunter2" not in repr(job.attempts)
    assert f"id={job.id!r}" in repr(job)


def note(secret: str) -> None:
    """Take a secret."""


async def renew(world: World, claim: Claim, progress: Progress | None) -> None:
    """Renew a claim as a worker does."""
    renewals = (Renewal(claim.job.id, claim.fence, progress),)
    request = RenewRequest(scope=Scope.all(), worker=WORKER, lease=12 * SECOND, renewals=renewals)
    await world.oracle.claims.renew(request)


async def settle(world: World, claim: Claim, log: str | None, *, is_last: bool = False) -> None:
    """End an attempt that has logged something."""
    ending = Succeeded(None) if is_last else Snoozed(SECOND, "later")
    settlements = (msgspec.structs.replace(decide_settlement(claim, ending, draw=0.5), log=log),)
    await world.oracle.claims.settle(SettleRequest(scope=Scope.all(), worker=WORKER, settlements=settlements))
    world.clock.advance(2)


async def test_progress_is_that_of_the_running_attempt(world: World) -> None:
    """S62: nothing before the first word, the newest fraction and note, and nothing after the end."""
    app = world.app()
    job = await app.task(name="fax")(note).using(tenant="acme").aenqueue("x")
    assert job.progress is None
    claim = await world.claim()
    await renew(world, claim, Progress(0.25, "page 1"))
    await renew(world, claim, Progress(0.5, "page 2"))
    for seen in (await job.arefresh(), (await app.jobs.afind()).items[0]):
        assert seen.progress == Progress(0.5, "page 2")
        assert (seen.progress.fraction, seen.progress.note) == (0.5, "page 2")
    await settle(world, claim, None)
    assert (await job.arefresh()).progress is None


async def test_logs_are_lines_by_attempt(world: World) -> None:
    """S62: of those that logged something, oldest first; of the running one they are not stored yet."""
    job = await world.app().task(name="fax")(note).using(tenant="acme").aenqueue("x")
    assert job.logs == {}
    await settle(world, await world.claim(), "INFO one\nINFO two")
    await settle(world, await world.claim(), None)
    claim = await world.claim()
    assert list((await job.arefresh()).logs.items()) == [(1, ("INFO one", "INFO two"))]
    await settle(world, claim, "ERROR three", is_last=True)
    job = await job.arefresh()
    assert job.state is State.SUCCEEDED
    assert list(job.logs.items()) == [(1, ("INFO one", "INFO two")), (3, ("ERROR three",))]
