"""`app.tenants.shares`: who holds how many slots, what is fair, who slows whom and since when they wait."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import InsideTenant, Limits, Rate, TenantShares
from fairlane.app.admin.shares import reading
from fairlane.app.admin.shares.views import FILTERS, ORDERS
from fairlane.model.instants import SECOND, to_datetime
from tests.app.contention import opened_shop
from tests.app.world import World, note
from tests.stores import STORES


def who(shares: TenantShares) -> dict[str, tuple[int, float, bool, bool]]:
    """Return what each tenant holds, what is fair, whether it is over and whether it is slowed."""
    return {one.tenant: (one.running, one.fair, one.is_over, one.is_slowed) for one in shares.items}


@pytest.mark.parametrize("store", sorted(STORES))
async def test_the_tenant_that_holds_all_slots_slows_those_that_wait(store: str) -> None:
    """S93, S94: four slots for three of equal weight, of whom one wants but one."""
    async with opened_shop(store) as shop:
        await shop.crowd()
        shares = await shop.app.tenants.ashares()
        assert who(shares) == {
            "globex": (4, 1.5, True, False),
            "acme": (0, 1.5, False, True),
            "initech": (0, 1.0, False, True),
        }
        (queue,) = shares.queues
        assert (queue.queue, queue.running, queue.ready, queue.tenants) == ("bulk", 4, 8, 3)
        assert [one.tenant for one in queue.over] == ["globex"]
        assert [one.tenant for one in queue.slowed] == ["acme", "initech"]  # who waits longer first
        assert (queue.overs, queue.sloweds) == (1, 2)


async def test_it_says_since_when_a_tenant_waits_and_for_which_job() -> None:
    """Its first ready job, which `explain` can be asked about."""
    async with opened_shop() as shop:
        await shop.crowd()
        (first,) = (await shop.app.jobs.afind(tenant="initech")).items
        shares = {one.tenant: one for one in (await shop.app.tenants.ashares()).items}
        (place,) = shares["initech"].queues
        assert (place.first_id, place.waits_since) == (first.id, to_datetime(shop.clock.now()))
        assert shares["acme"].waits_since == to_datetime(shop.clock.now() - 30 * SECOND)
        assert (await shop.app.jobs.aexplain(first.id)).reason == "no_worker"


async def test_weights_are_what_a_share_is_made_of() -> None:
    """Who has the weight to hold three of four slots slows nobody with them."""
    async with opened_shop() as shop:
        await shop.app.tenants.aset("globex", weight=3.0)
        await shop.enqueue("globex", 9)
        await shop.enqueue("acme", 9)
        await shop.claim(4)
        shares = await shop.app.tenants.ashares()
        assert who(shares) == {"globex": (3, 3.0, False, False), "acme": (1, 1.0, False, False)}
        assert {one.tenant: one.queues[0].guaranteed for one in shares.items} == {"globex": 3.0, "acme": 1.0}


@pytest.mark.parametrize("held", ["tenant", "queue", "limit", "rate", "queue rate"])
async def test_nobody_slows_a_tenant_that_something_else_holds_back(held: str) -> None:
    """S94: neither a paused one, nor one at its own limit or rate."""
    async with opened_shop() as shop:
        app = shop.app
        if held == "rate":
            limits = Limits(rate=Rate(1, "day"))
            await app.tenants.aset("acme", queue="bulk", limits=limits)
            await shop.enqueue("acme")
            await shop.claim(1)
        if held == "queue rate":
            await app.queues.aset("bulk", rate=Rate(5, "day", burst=5))
        await shop.enqueue("globex", 9)
        await shop.claim(4 if held == "rate" else 5)
        await shop.enqueue("acme", 5)
        if held == "rate":  # it holds one of five, and 2.5 are fair: it waits for its rate
            assert (await app.tenants.ashares()).counts["slowed"] == 0
            await app.tenants.areset("acme")
            assert (await app.tenants.ashares()).counts["slowed"] == 1
            return
        if held == "queue rate":
            assert (await app.tenants.ashares()).counts["slowed"] == 0
            await app.queues.areset("bulk")
        if held == "tenant":
            await app.tenants.apause("acme", reason="x")
        elif held == "queue":
            await app.queues.apause("bulk", reason="x")
        elif held == "limit":
            await app.tenants.aset("acme", limits=Limits(running=0))
        if held != "queue rate":
            shares = await app.tenants.ashares()
            assert (shares.counts["slowed"], shares.counts["over"]) == (0, 0)
        await app.tenants.aresume("acme")
        await app.queues.aresume("bulk")
        await app.tenants.areset("acme")
        assert (await app.tenants.ashares()).counts["slowed"] == 1


async def test_filters_and_their_counts() -> None:
    """Every filter counts what it shows, within the name that is asked for."""
    async with opened_shop() as shop:
        await shop.crowd()
        await shop.enqueue("umbrella", delay=60)
        await shop.app.tenants.adeclare("idle-corp", labels={"plan": "pro"})
        await shop.app.tenants.aclose("initech", reason="x")
        (dead,) = await shop.enqueue("acme", queue="other")
        await shop.app.jobs.acondemn(dead, reason="x")
        names = {
            only: {one.tenant for one in (await shop.app.tenants.ashares(only=only)).items}
            for only in FILTERS
        }
        assert names == {
            "all": {"acme", "globex", "idle-corp", "initech", "umbrella"},
            "over": {"globex"},
            "slowed": {"acme", "initech"},
            "waiting": {"acme", "globex", "initech", "umbrella"},
            "running": {"globex"},
            "held": {"initech"},
            "dead": {"acme"},
            "idle": {"idle-corp"},
        }
        counts = (await shop.app.tenants.ashares()).counts
        assert counts == {only: len(found) for only, found in names.items()}
        narrow = await shop.app.tenants.ashares(name="GLO")
        assert ([one.tenant for one in narrow.items], narrow.counts["all"]) == (["globex"], 1)
        labelled = await shop.app.tenants.ashares(labels={"plan": "pro"})
        assert [one.tenant for one in labelled.items] == ["idle-corp"]


async def test_each_order_is_paged_without_a_gap() -> None:
    """S51: page by page, each tenant once, in the same order as all at once."""
    async with opened_shop() as shop:
        await shop.crowd()
        for number in range(9):
            await shop.enqueue(f"t{number}", number % 3 + 1, delay=60 * (number % 2))
            shop.clock.advance(1)
        for order in ORDERS:
            whole = [one.tenant for one in (await shop.app.tenants.ashares(order=order)).items]
            found: list[str] = []
            cursor: str | None = None
            while True:
                page = await shop.app.tenants.ashares(order=order, limit=5, cursor=cursor)
                found += [one.tenant for one in page.items]
                cursor = page.cursor
                if cursor is None:
                    break
            assert found == whole
            assert len(whole) == 12
        for order in ("impact", "waits"):
            assert (await shop.app.tenants.ashares(order=order)).items[0].tenant == "globex"
        assert [one.tenant for one in (await shop.app.tenants.ashares(order="name")).items] == sorted(whole)


async def test_one_tenant_is_shown_with_the_queues_that_it_shares() -> None:
    """As among all; of a tenant that nobody knows, there is the weight that it would have."""
    async with opened_shop() as shop:
        await shop.crowd()
        await shop.enqueue("globex", queue="own")
        await shop.enqueue("umbrella", queue="elsewhere")
        shares = await shop.app.tenants.ashare("acme")
        everyone = await shop.app.tenants.ashares(name="acme")
        assert shares.items == everyone.items
        assert [one.queue for one in shares.queues] == ["bulk"]
        assert shares.queues[0] == next(one for one in everyone.queues if one.queue == "bulk")
        nobody = await shop.app.tenants.ashare("nobody")
        assert (nobody.items[0].tenant, nobody.items[0].weight, nobody.queues) == ("nobody", 1.0, ())


async def test_more_tenants_than_are_read_are_left_out_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is bounded, and says where it ended."""
    async with opened_shop() as shop:
        for number in range(6):
            await shop.enqueue(f"t{number}")
        assert (await shop.app.tenants.ashares()).is_complete
        monkeypatch.setattr(reading, "MOST_TENANTS", 4)
        shares = await shop.app.tenants.ashares()
        assert [one.tenant for one in shares.items] == ["t0", "t1", "t2", "t3"]
        assert not shares.is_complete


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"order": "size"}, "order is 'size'; use one of: impact, waits"),
        ({"only": "mine"}, "only is 'mine'; use one of: all, over"),
        ({"limit": 0}, "limit is 0"),
        ({"cursor": "x"}, "cursor"),
        ({"labels": 7}, "label"),
        ({"name": 7}, "name: is of type int"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(world: World, call: Any, words: str) -> None:
    """Before the store is asked."""
    with pytest.raises(ValueError, match=words):
        world.app().tenants.shares(**call)


def test_a_cursor_of_another_order_is_refused(world: World) -> None:
    """It would skip tenants without a word."""
    app = world.app()
    task = app.task(name="note")(note)
    for tenant in ("a", "b"):
        task.using(tenant=tenant).enqueue()
    cursor = app.tenants.shares(limit=1, order="name").cursor
    with pytest.raises(ValueError, match="of the order 'name'"):
        app.tenants.shares(cursor=cursor)


def test_from_inside_a_tenant_nobody_is_compared(world: World) -> None:
    """S9: what others hold is theirs."""
    app = world.app()
    with app.tenant("acme"):
        with pytest.raises(InsideTenant):
            app.tenants.shares()
        with pytest.raises(InsideTenant):
            app.tenants.share("acme")
