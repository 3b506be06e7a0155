"""Take the pictures of all pages, light and dark, into docs/shots: `make shots`.

They show the sample shop with a real worker, at a moment when something of everything is there. The shop's
store must be empty: `FAIRLANE_URL` names it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from fairlane import Call, Fairlane
from fairlane.web.application import asgi
from fairlane.web.page import WebPage
from fairlane.web.pages import PAGES
from tests.browser.chromium import opened_browser
from tests.browser.dashboard import served
from tests.browser.picture import picture
from tests.browser.viewer import viewer
from tests.web import shop
from tests.web.addresses import addresses_of

FOLDER: Final = Path(__file__).parents[2] / "docs" / "shots"
MOST_BYTES: Final = 2_500_000
"""Of all pictures together."""

SCHEMES: Final = ("light", "dark")
WINDOW: Final = {"width": 1280, "height": 800}

_ROOT: Final = str(Path(__file__).parents[2])
_ELSEWHERE: Final = """(root) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(root, "/srv/shop");
}"""
"""Tracebacks name the folder of the machine that takes the pictures, which is nobody's business."""

_SHOWN: Final = "invoice"
"""The tag of the job whose page is shown."""

_LASTS: Final = 600.0
"""Seconds that jobs run which are shown running."""

_WORKER: Final = ("-m", "fairlane", "worker", "tests.web.shop:app", "--processes", "0")


def names() -> dict[str, WebPage]:
    """Return the declared pages by the names of their pictures, without scheme and ending."""
    return {page.name.replace(".", "-"): page for group in PAGES for page in group if page.method == "GET"}


def files() -> set[str]:
    """Return the names of all pictures that there should be."""
    return {f"{name}-{scheme}.png" for name in names() for scheme in SCHEMES}


async def main() -> None:
    """Fill the shop, wait until everything is there, and take the pictures."""
    app = shop.app
    await app.client.store.upkeep.migrate()
    try:
        with worker():
            await furnish(app)
            await take(app)
    finally:
        await app.aclose()


@contextmanager
def worker() -> Generator[None]:
    """Let a worker of the shop work for the length of a block."""
    process = subprocess.Popen([sys.executable, *_WORKER], stderr=subprocess.DEVNULL)  # noqa: S603 (our own)
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def furnish(app: Fairlane) -> None:
    """Let there be jobs in every state, dead letters with notes, a pause, a limit and a gate."""
    await asyncio.to_thread(shop.fill, 60)
    await until(app, lambda found: found["dead"] >= 8 and found["succeeded"] >= 50)
    await spend(app)
    slow = [shop.import_row.using(tenant="globex").bind(row, pause=_LASTS) for row in range(1, 7)]
    slow += [
        shop.import_row.using(tenant="acme", tags=["dec"]).bind(row, pause=_LASTS) for row in range(1, 9)
    ]
    await app.aenqueue_many(slow)
    await until(app, lambda found: found["running"] >= 5)
    await shop.remember(app, str(app.settings.url))
    with app.acting_as("ann@example.org"):
        await app.schedules.apause("weekly-report", reason="the numbers of October are being corrected")
        await app.schedules.arun("usage", note="asked for by phone")
        await app.schedules.aadd(
            "thanks", "mail.send", at="2030-11-28T18:00", timezone="America/Chicago", tenant="acme",
            arguments={"to": "everybody@example.org"}, note="the campaign of the year",
        )  # fmt: skip
        letter = (await app.dead.afind(task="catalog.import_row")).items[0]
        await app.dead.aacknowledge(letter.id, note="asked the supplier")
        await app.dead.anote(letter.id, "The supplier sends a corrected file tomorrow.")
        await app.tenants.apause("initech", reason="their mail server is being moved")
        await app.queues.aset("bulk", max_waiting=10_000, note="the disk is small")
        await app.gates.aset("smtp", limit=4, note="what the provider allows")
    await shop.send_fax.using(tenant="acme", tags=[_SHOWN]).aenqueue("inv-7", "43-1-7")
    while (await app.jobs.afind(tag=_SHOWN)).items[0].failures < 2:  # noqa: ASYNC110 (in another process)
        await asyncio.sleep(0.2)
    calls = [shop.send_mail.using(tenant="initech").bind(f"user{number}@example.org") for number in range(6)]
    await app.aenqueue_many(calls)


async def spend(app: Fairlane) -> None:
    """Let a budget be nearly spent and one be spent; let dead letters and jobs be behind an open breaker."""
    pictures = [("acme", "cat.jpg", "148.20"), ("globex", "dog.jpg", "264.75")]
    pictures += [("globex", f"broken-{number}.jpg", "1.10") for number in range(3)]
    texts = [("acme", "40.00"), ("globex", "33.50"), ("initech", "4.20")]
    calls: list[Call[Any]] = [
        shop.describe.using(tenant=tenant, created_by="ann@example.org").bind(picture, Decimal(price))
        for tenant, picture, price in pictures
    ]
    calls += [shop.send_sms.using(tenant=tenant).bind("+43 1 7", Decimal(price)) for tenant, price in texts]
    jobs = await app.aenqueue_many(calls)
    while not all([(await job.arefresh()).is_finished for job in jobs]):  # noqa: ASYNC110 (in another process)
        await asyncio.sleep(0.2)
    with app.acting_as("ann@example.org"):
        ends = datetime.now(UTC) + timedelta(hours=2)
        await app.breakers.aopen("vision-api", reason="they restart until two", until=ends)
    waiting = [
        shop.describe.using(tenant="acme").bind(f"cat-{number}.jpg", Decimal(1)) for number in range(4)
    ]
    await app.aenqueue_many([*waiting, shop.send_sms.using(tenant="acme").bind("+43 1 8", Decimal("0.10"))])


async def until(app: Fairlane, is_there: Callable[[Mapping[str, int]], bool]) -> None:
    """Wait until the counts of jobs say so."""
    # It happens in another process.
    while not is_there({state.value: jobs for state, jobs in (await app.jobs.acount()).states.items()}):  # noqa: ASYNC110
        await asyncio.sleep(0.2)


async def addresses(app: Fairlane) -> dict[str, str]:
    """Return the address of each picture: of a page with a name, the thing that says most."""
    retried = (await app.jobs.afind(tag=_SHOWN)).items[0]
    letter = (await app.dead.afind(task="catalog.import_row")).items[0]
    group = next(one for one in await app.dead.agroups() if one.breaker is not None)
    best = {
        "jobs-show": f"/jobs/{retried.id}",
        "dead-list": "/dead?" + urlencode({"fingerprint": group.fingerprint}),
        "dead-show": f"/dead/{letter.id}",
        "queues-show": "/queues/bulk",
        "tenants-show": "/tenants/globex",
        "schedules-list": "/schedules?" + urlencode({"cron": "0 9 * * MON#1", "timezone": "Europe/Berlin"}),
        "schedules-show": "/schedules/prices",
        "tasks-show": "/tasks/catalog.describe",
    }
    return {name: best.get(name) or (await addresses_of(app, page))[0] for name, page in names().items()}


async def take(app: Fairlane) -> None:
    """Open every page and keep its picture; remove the pictures of pages that are no more."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        if old.name not in files():
            old.unlink()
    async with opened_browser() as browser, served(asgi(app, authenticate=shop.who_asks)) as url:
        workshop = await browser.new_page()
        for scheme in SCHEMES:
            view: dict[str, Any] = {"viewport": WINDOW, "color_scheme": scheme}
            async with viewer(browser, url, **view) as sight:
                for name, path in (await addresses(app)).items():
                    await sight.open(path)
                    await sight.is_live()
                    await sight.page.evaluate(_ELSEWHERE, _ROOT)
                    file = FOLDER / f"{name}-{scheme}.png"
                    file.write_bytes(await picture(sight.page, workshop))
                    print(f"{file.name:30} {file.stat().st_size:7,}")


if __name__ == "__main__":
    asyncio.run(main())
