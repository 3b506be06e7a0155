"""The pages of queues: what waits and runs in each, its rates, who holds its slots, and removing one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from httpx2 import Response

from fairlane import Rate
from fairlane.model.access import Role
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, WorkerRecord
from fairlane.web.html.fragments import fragments
from fairlane.web.html.words import queue_colour
from tests.app.contention import Shop, opened_shop
from tests.stores import STORES
from tests.web.callers import ann, web_of
from tests.web.pages.markup import words

HTMX = {"hx-request": "true"}


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """Globex holds all four slots of queue bulk; acme and initech wait."""
    async with opened_shop() as made:
        await made.crowd()
        yield made


async def register(shop: Shop) -> None:
    """Let a worker serve the queue from two lanes."""
    lanes = (LaneRecord("fast", 1, ("mail",)), LaneRecord("slow", 3, ("bulk", "own")))
    record = WorkerRecord(
        id="w1", host="h", pid=1, version="1", queues=("bulk", "own", "mail"), slots=4, lanes=lanes
    )
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await shop.store.registry.register(request)


def text_of(answer: Response) -> str:
    """Return what a page says, in one line."""
    assert answer.status_code == 200, answer.text
    return words(answer.text)


def row_of(answer: Response, queue: str) -> str:
    """Return what the row of a queue says."""
    assert answer.status_code == 200, answer.text
    found = re.search(rf'<tr id="queue-{queue}".*?</tr>', answer.text, re.DOTALL)
    assert found is not None, queue
    return words(re.sub("<title>.*?</title>", "", found[0]))


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_every_queue_has_its_numbers_and_who_holds_its_slots(store: str) -> None:
    """Exact, beside what serves it and what keeps it."""
    async with opened_shop(store) as shop:
        await shop.crowd()
        await shop.enqueue("acme", 2, delay=60)
        async with web_of(shop.app, ann()) as web:
            row = row_of(await web.get("/queues"), "bulk")
            assert "no worker 2 tenants slowed none 8 2 4 globex 4, fair 1.5" in row
            assert "own" in text_of(await web.get("/queues"))  # declared, and empty
            await register(shop)
            served = await web.get("/queues")
            assert "slow 3 slots" in row_of(served, "bulk")
            assert "Tenants are slowed in 1 queue: bulk." in text_of(served)
            one = text_of(await web.get("/queues/bulk"))
            assert "globex slows 2 other tenants: it holds 4 of 4 slots, 1.5 would be fair." in one
            assert "Ready 8 Delayed 2 Running 4 Succeeded 0 Dead 0 Cancelled 0" in one


async def test_its_jobs_stand_under_the_tab_of_their_state(shop: Shop) -> None:
    """At most 50, with the way to all of them."""
    await shop.enqueue("acme", 60)
    async with web_of(shop.app, ann()) as web:
        ready = await web.get("/queues/bulk")
        assert ready.text.count('data-row="') == 50
        assert "50 jobs of 68" in text_of(ready)
        assert "/jobs?q=queue%3Abulk+state%3Aready" in ready.text.replace("%20", "+")
        running = await web.get("/queues/bulk?state=running")
        assert running.text.count('data-row="') == 4
        assert (await web.get("/queues/bulk?state=mine")).status_code == 422


async def test_the_state_of_its_rates_is_shown(shop: Shop) -> None:
    """How many starts they allow now, when the next one, how many jobs they hold back."""
    await shop.app.queues.aset("bulk", rate=Rate(2, "minute", burst=2))
    async with web_of(shop.app, ann()) as web:
        assert "all tenants 2 per minute, burst 2 2 at once 0" in text_of(await web.get("/queues/bulk"))
        await shop.claim(2)
        used = words(fragments((await web.get("/queues/bulk")).text)["rates"])
    assert re.search(r"burst 2 0 .* 6 $", used), used


async def test_what_fails_most_and_since_when_the_oldest_waits(shop: Shop) -> None:
    """By task, of this queue alone."""
    for queue in ("bulk", "own"):
        (id,) = await shop.enqueue("acme", queue=queue)
        if queue == "own":
            await shop.claim(1, "own")
            await shop.app.jobs.afail(id, retry=False, reason="the printer burns")
    async with web_of(shop.app, ann()) as web:
        assert "No failed attempts" in text_of(await web.get("/queues/bulk"))
        own = text_of(await web.get("/queues/own"))
        assert "Worst tasks" in own
        assert re.search(r"note.*the printer burns.* 1 1 1 ", own)
        await register(shop)
        await shop.enqueue("acme", queue="own")
        shop.clock.advance(5)
        assert "1 job is ready, the oldest was enqueued" in text_of(await web.get("/queues/own"))


async def test_a_queue_is_paused_limited_and_reset_from_its_page(shop: Shop) -> None:
    """With a note, by those who may."""
    async with web_of(shop.app, ann()) as web:
        form = {"queue": "bulk", "note": "maintenance", "for": "30m"}
        assert (await web.post("/do/queues.pause", data=form, headers=HTMX)).status_code == 204
        paused = text_of(await web.get("/queues/bulk"))
        assert re.search(r"Paused by ann .*?: maintenance, until ", paused)
        assert "paused" in row_of(await web.get("/queues"), "bulk")
        form = {"queue": "bulk", "rate": "50/minute", "running": "2", "max_waiting": "", "note": "slow"}
        assert (await web.post("/do/queues.set", data=form, headers=HTMX)).status_code == 204
        assert "Each tenant 2 running All together 50 per minute" in text_of(await web.get("/queues/bulk"))
        await web.post("/do/queues.reset", data={"queue": "bulk", "note": "done"}, headers=HTMX)
        assert "50 per minute" not in text_of(await web.get("/queues/bulk"))


async def test_only_an_empty_queue_can_be_removed(shop: Shop) -> None:
    """The page says so before, the store afterwards; then nobody knows it any more."""
    await shop.app.queues.apause("scrap", reason="x")
    async with web_of(shop.app, ann()) as web:
        full = text_of(await web.get("/queues/bulk"))
        assert "12 jobs wait or run in it; only an empty queue can be removed." in full
        refused = await web.post("/do/queues.remove", data={"queue": "bulk", "note": "x"}, headers=HTMX)
        assert refused.status_code == 422
        assert (await web.get("/queues/scrap")).status_code == 200
        done = await web.post("/do/queues.remove", data={"queue": "scrap", "note": "unused"}, headers=HTMX)
        assert done.status_code == 204, done.text
        assert (await web.get("/queues/scrap")).status_code == 404
        assert "scrap" not in text_of(await web.get("/queues"))


async def test_a_queue_that_nobody_knows_is_not_there(shop: Shop) -> None:
    """Nor is what is no name."""
    async with web_of(shop.app, ann()) as web:
        for name in ("missing", "Bulk!", "-x"):
            assert (await web.get(f"/queues/{name}")).status_code == 404, name


@pytest.mark.parametrize("role", list(Role))
async def test_a_caller_of_one_tenant_sees_its_own_jobs_there(shop: Shop, role: Role) -> None:
    """Its numbers, its jobs, no holder, no limit; a queue without jobs of its own is not there."""
    await shop.enqueue("globex", queue="own")
    await shop.app.queues.aset("bulk", rate=Rate(7, "minute"), note="for globex")
    async with web_of(shop.app, ann(role, "acme")) as web:
        listed = await web.get("/queues")
        assert re.findall(r'<tr id="queue-([^"]+)"', listed.text) == ["bulk"]
        assert "2 0 0" in row_of(listed, "bulk")
        one = await web.get("/queues/bulk")
        assert "Ready 2 Delayed 0 Running 0" in text_of(one)
        for answer in (listed, one):
            assert not re.search("globex|initech|fair |slow|minute|Pause", text_of(answer))
        assert one.text.count('data-row="') == 2
        there, missing = await web.get("/queues/own"), await web.get("/queues/missing")
        assert (there.status_code, missing.status_code) == (404, 404)


async def test_a_queue_has_one_colour_on_all_pages(shop: Shop) -> None:
    """That of its name, and two queues of the shop differ."""
    assert queue_colour("bulk") != queue_colour("own")
    mark = f'class="q q-{queue_colour("bulk")}"'
    async with web_of(shop.app, ann()) as web:
        for path in ("/queues", "/queues/bulk", "/tenants", "/tenants/acme", "/jobs", "/"):
            assert mark in (await web.get(path)).text, path
