"""A relay acts for all tenants, so it is refused from inside one (S9)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from fairlane import InsideTenant, OutsideTenant
from fairlane.app.ambient import require_tenant
from fairlane.worker.worker import WorkerRuntime
from tests.outbox.shop import Shop, eventually

FORGED = "UPDATE fairlane_outbox SET tenant = ?, job = CAST(replace(job, ?, ?) AS BLOB)"


def forge(shop: Shop, tenant: str) -> None:
    """Leave one row in the outbox that says it is of another tenant than its author, as any SQL can."""
    shop.fill(1, "acme")
    shop.change(FORGED, tenant, '"tenant":"acme"', f'"tenant":"{tenant}"')


def work(shop: Shop) -> None:
    """Run what waits as `fairlane worker --burst` does."""
    with require_tenant():
        asyncio.run(WorkerRuntime(shop.app, burst=True).run())


class Emptied(threading.Event):
    """Tells a relay to stop as soon as its outbox is empty."""

    def __init__(self, shop: Shop) -> None:
        """Look at this outbox."""
        super().__init__()
        self._shop = shop

    def is_set(self) -> bool:
        """Whether nothing is left."""
        return self._shop.rows() == []


def drain(shop: Shop) -> None:
    """Move all that is there."""
    shop.relay().drain()


def run(shop: Shop) -> None:
    """Run in the caller's thread."""
    shop.relay().run(Emptied(shop))


def start(shop: Shop) -> None:
    """Run in a thread."""
    with shop.relay():
        eventually(lambda: shop.rows() == [])


def step(shop: Shop) -> None:
    """Do a single pass."""
    with shop.relay().session() as session:
        session.step()


Way: TypeAlias = Callable[[Shop], None]
WAYS: dict[str, Way] = {"drain": drain, "run": run, "start": start, "step": step}


@pytest.mark.parametrize("tenant", ["globex", "system"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_relay_inside_a_handler_is_refused_and_moves_nothing(shop: Shop, way: Way, tenant: str) -> None:
    """S9: forged rows would run as another tenant, or as `system`. The error says who may."""
    caught: list[BaseException] = []

    @shop.app.task(name="mover")
    def mover() -> None:
        with pytest.raises(InsideTenant, match=r"relay moves the jobs of all tenants.*system=True") as error:
            way(shop)
        caught.append(error.value)

    forge(shop, tenant)
    mover.using(tenant="acme").enqueue()
    work(shop)
    assert len(caught) == 1
    assert shop.rows("tenant") == [tenant]
    assert {job.tenant for job in shop.app.jobs.find()} == {"acme"}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_relay_in_a_thread_of_a_handler_s_own_is_refused(shop: Shop, way: Way) -> None:
    """S9: such a thread belongs to no tenant, which is not the same as to all of them."""
    caught: list[BaseException] = []

    def try_it() -> None:
        try:
            way(shop)
        except OutsideTenant as error:
            caught.append(error)

    @shop.app.task(name="mover")
    def mover() -> None:
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()

    forge(shop, "globex")
    mover.using(tenant="acme").enqueue()
    work(shop)
    assert len(caught) == 1
    assert shop.rows("tenant") == ["globex"]


def test_inside_a_tenant_s_block_a_relay_is_refused_too(shop: Shop) -> None:
    """A request that serves one tenant is no operator."""
    shop.fill(1, "globex")
    with shop.app.tenant("acme"), pytest.raises(InsideTenant):
        shop.relay().drain()
    assert len(shop.rows()) == 1


@pytest.mark.parametrize("is_system", [True, False], ids=["system task", "as_system"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_system_task_and_a_handler_that_says_why_may_relay(
    shop: Shop, way: Way, *, is_system: bool
) -> None:
    """S8, S9: as a task that comes by every minute does, for all tenants."""

    def handler() -> None:
        if is_system:
            way(shop)
        else:
            with shop.app.as_system(reason="empty the outbox"):
                way(shop)

    mover: Any = shop.app.task(name="mover", system=is_system)(handler)
    shop.fill(3, "acme", "globex", "initech")
    (mover if is_system else mover.using(tenant="acme")).enqueue()
    work(shop)
    eventually(lambda: shop.rows() == [])
    assert {"acme", "globex", "initech"} <= {job.tenant for job in shop.app.jobs.find()}


def test_a_relay_that_was_started_with_the_application_goes_on_in_its_worker(shop: Shop) -> None:
    """Whoever started it was no handler; the walls that a worker raises later are not for it."""
    moved: list[bool] = []
    shop.fill(1, "globex")
    columns = "id, tenant, format, job, created_at"
    (row,) = shop.rows(columns)
    shop.change("DELETE FROM fairlane_outbox")

    @shop.app.task(name="looks")
    def looks() -> None:
        shop.change(f"INSERT INTO fairlane_outbox ({columns}) VALUES (?, ?, ?, ?, ?)", *row)  # noqa: S608 (our own text)
        eventually(lambda: shop.rows() == [])
        moved.append(True)

    with shop.relay():
        looks.using(tenant="acme").enqueue()
        work(shop)
    assert moved == [True]
