"""The pages of tenants: who slows whom, why jobs wait, what can be done, and what one tenant sees."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from httpx2 import Response

from fairlane import Limits, Rate
from fairlane.model.access import Role
from fairlane.web.html.fragments import fragments
from tests.app.contention import Shop, opened_shop
from tests.stores import STORES
from tests.web.callers import ann, web_of
from tests.web.pages.markup import words

HTMX = {"hx-request": "true"}


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """Globex holds all four slots; acme and initech wait."""
    async with opened_shop() as made:
        await made.crowd()
        yield made


def text_of(answer: Response) -> str:
    """Return what a page says, in one line."""
    assert answer.status_code == 200, answer.text
    return words(answer.text)


def tenants_in(answer: Response) -> list[str]:
    """Return the tenants of the list, in order."""
    return re.findall(r'<tr id="tenant-([^"]+)"', answer.text)


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_the_first_sentence_says_who_slows_whom(store: str) -> None:
    """With the slots of both sides, since when they wait, and the way to why."""
    async with opened_shop(store) as shop:
        await shop.crowd()
        (first,) = (await shop.app.jobs.afind(tenant="initech")).items
        async with web_of(shop.app, ann()) as web:
            answer = await web.get("/tenants")
            text = text_of(answer)
            assert "globex is slowing down 2 tenants in bulk." in text
            assert "globex holds 4 slots there, and 1.5 are its fair share." in text
            assert re.search(r"initech holds 0, fair 1, waits since [^,]+, why: no worker", text)
            assert f'href="/jobs/{first.id}"' in answer.text
            assert tenants_in(answer) == ["globex", "acme", "initech"]
            own = text_of(await web.get("/tenants/globex"))
            assert "It slows 2 other tenants in bulk: it holds 4 slots there, 1.5 are its fair share." in own
            slowed = text_of(await web.get("/tenants/acme"))
            assert "It holds less than its share because of globex, in bulk: 0 slots of 1.5." in slowed


async def test_nobody_is_blamed_when_nobody_waits() -> None:
    """Many slots are no offence."""
    async with opened_shop() as shop:
        await shop.enqueue("globex", 9)
        await shop.claim(4)
        async with web_of(shop.app, ann()) as web:
            assert "No tenant slows another." in text_of(await web.get("/tenants"))
            one = text_of(await web.get("/tenants/globex"))
            assert "No other tenant slows it." in one
            assert "slows others" not in one


async def test_tabs_count_and_filter_and_orders_sort(shop: Shop) -> None:
    """All of it stands in the URL."""
    await shop.enqueue("umbrella", delay=60)
    async with web_of(shop.app, ann()) as web:
        text = text_of(await web.get("/tenants"))
        assert "All 4 Above share 1 Slowed 2 Waiting 4 Running 1 Paused or closed 0" in text
        assert tenants_in(await web.get("/tenants?only=slowed")) == ["acme", "initech"]
        assert tenants_in(await web.get("/tenants?sort=name&name=I")) == ["initech"]
        assert tenants_in(await web.get("/tenants?sort=waits"))[0] == "globex"
        nothing = text_of(await web.get("/tenants?label=plan=pro"))
        assert "No such tenant" in nothing


async def test_a_long_list_is_paged_and_nobody_is_left_out(shop: Shop) -> None:
    """By the link below it, in the order and with the filter that were chosen."""
    for number in range(70):
        await shop.enqueue(f"customer-{number:02}", delay=60)
    found: list[str] = []
    async with web_of(shop.app, ann()) as web:
        path: str | None = "/tenants?only=waiting&sort=waiting&name=customer"
        while path is not None:
            answer = await web.get(path)
            found += tenants_in(answer)
            following = re.search(r'rel="next" href="([^"]+)"', answer.text)
            path = following and following[1].replace("&amp;", "&")
    assert sorted(found) == [f"customer-{number:02}" for number in range(70)]


async def test_why_its_jobs_wait_is_the_answer_of_explain(shop: Shop) -> None:
    """For the first job of each queue, and by reason for those that are delayed."""
    await shop.enqueue("acme", delay=60)
    await shop.app.tenants.aset("acme", queue="bulk", limits=Limits(running=0, rate=Rate(1, "minute")))
    async with web_of(shop.app, ann()) as web:
        answer = await web.get("/tenants/acme")
    text = text_of(answer)
    assert "its tenant runs as many jobs of the queue as it may (tenant acme)" in text
    assert "it was enqueued for later 1 delayed" in text
    assert "0 running, 1 per minute" in text
    assert "1 start allowed" in text
    assert "is slowing" not in text


async def test_a_pause_with_its_note_is_made_and_ended_from_the_page(shop: Shop) -> None:
    """The form says how many jobs it concerns; the page then says who, why, and until when."""
    async with web_of(shop.app, ann(Role.OPERATOR)) as web:
        before = text_of(await web.get("/tenants/acme"))
        assert "2 ready jobs will wait until it is resumed. 0 running jobs will finish" in before
        form = {"tenant": "acme", "note": "their file is wrong", "for": "2h"}
        done = await web.post("/do/tenants.pause", data=form, headers=HTMX)
        assert done.status_code == 204, done.text
        paused = text_of(await web.get("/tenants/acme"))
        assert re.search(r"Paused by ann .*?: their file is wrong, until ", paused)
        assert "umbrella" not in paused
        refused = await web.post("/do/tenants.pause", data={"tenant": "acme", "note": ""}, headers=HTMX)
        assert refused.status_code == 422
        await web.post("/do/tenants.resume", data={"tenant": "acme"}, headers=HTMX)
        assert "Paused by" not in text_of(await web.get("/tenants/acme"))
    kinds = [one.kind for one in (await shop.app.audit.afind()).items]
    assert kinds[:2] == ["tenants.resume", "tenants.pause"]


async def test_a_limit_set_on_the_page_ends_the_slowing(shop: Shop) -> None:
    """What is left empty stays; who set it and why stands below, with the way back."""
    form = {"tenant": "globex", "queue": "bulk", "running": "1", "waiting": "", "rate": "", "note": "import"}
    async with web_of(shop.app, ann()) as web:
        done = await web.post("/do/tenants.set", data=form | {"weight": "0.5"}, headers=HTMX)
        assert done.status_code == 204, done.text
        text = text_of(await web.get("/tenants/globex"))
        assert "ann" in text
        assert ": import, until somebody resets it" in text
        assert "Reset…" in text
    tenant = await shop.app.tenants.aget("globex")
    assert (tenant.weight, tenant.limits["bulk"]) == (0.5, Limits(running=1))


@pytest.mark.parametrize(
    ("role", "there", "absent"),
    [
        (Role.VIEWER, set[str](), {"Pause…", "Change limits…", "Purge…", "Forget…"}),
        (Role.OPERATOR, {"Pause…", "Close…"}, {"Change limits…", "Purge…", "Forget…"}),
        (Role.MANAGER, {"Pause…", "Purge…"}, {"Change limits…", "Forget…"}),
        (Role.ADMIN, {"Pause…", "Change limits…", "Purge…", "Forget…"}, set[str]()),
    ],
)
async def test_a_page_offers_what_its_reader_may_do(
    shop: Shop, role: Role, there: set[str], absent: set[str]
) -> None:
    """And nothing that would be refused."""
    async with web_of(shop.app, ann(role)) as web:
        text = text_of(await web.get("/tenants/acme"))
    assert {one for one in there | absent if one in text} == there


@pytest.mark.parametrize("role", list(Role))
async def test_a_caller_of_one_tenant_sees_that_one_alone(shop: Shop, role: Role) -> None:
    """The list is its own page; others are not there, nor what can be told of them from shares."""
    async with web_of(shop.app, ann(role, "acme")) as web:
        for path in ("/tenants", "/tenants/acme", "/tenants?name=globex"):
            text = text_of(await web.get(path))
            assert "acme" in text
            assert not re.search("globex|initech|fair |slow", text), text
        known, unknown = await web.get("/tenants/globex"), await web.get("/tenants/nobody")
        assert (known.status_code, unknown.status_code) == (404, 404)
        bare = [re.sub(r"[0-9a-f-]{20,}|globex|nobody", "", one.text) for one in (known, unknown)]
        assert bare[0] == bare[1]


async def test_a_name_that_nobody_knows_says_so(shop: Shop) -> None:
    """It is no error: limits may be set before the first job. What is no name is not there."""
    async with web_of(shop.app, ann()) as web:
        assert "Nobody has heard of this tenant yet." in text_of(await web.get("/tenants/newcomer"))
        for name in ("*", "-x", "a%20b", "%22x"):
            assert (await web.get(f"/tenants/{name}")).status_code == 404, name


async def test_what_changes_on_the_pages_is_kept_current(shop: Shop) -> None:
    """Each part by its id; forms that somebody may be filling in are not replaced by chance."""
    async with web_of(shop.app, ann()) as web:
        parts = fragments((await web.get("/tenants")).text)
        assert {"answer", "contention", "tabs", "tenants"} <= set(parts)
        one = fragments((await web.get("/tenants/acme")).text)
        assert {"answer", "acts", "tiles", "why", "queues", "limits"} <= set(one)


async def test_a_tenant_is_drained_from_its_page(shop: Shop) -> None:
    """The page says what is left until nothing is."""
    async with web_of(shop.app, ann(Role.OPERATOR)) as web:
        assert 'action="/do/tenants.drain"' in (await web.get("/tenants/globex")).text
        form = {"tenant": "globex", "by": "close", "note": "they leave", "next": "/tenants/globex"}
        done = await web.post("/do/tenants.drain", data=form, headers=HTMX)
        assert done.headers["hx-redirect"] == "/tenants/globex"
        text = text_of(await web.get("/tenants/globex"))
        assert "Tenant globex drains; this page shows what is left." in text
        assert re.search(r"Closed by ann .*?: they leave", text)
        await shop.app.tenants.apurge("globex", reason="x")
        form = {**form, "by": "pause"}
        await web.post("/do/tenants.drain", data=form, headers=HTMX)
        text = text_of(await web.get("/tenants/globex"))
        assert "Paused. 0 ready jobs wait until it is resumed; 4 jobs still run." in text
        assert "It is paused and closed." in text
