"""The pages of workers: healthy or not, what runs in them, what they say, what they are told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from httpx2 import Response

from fairlane.model.access import Role
from fairlane.model.duty_report import DutyReport, DutyReports
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import HeartbeatRequest, LeadRequest
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import PAYLOAD, WORKER, Scene, filled

PAGE = f"/workers/{WORKER}"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


def text_of(answer: Response) -> str:
    """Return what a page says, in one line."""
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", Markup(answer.text).text)


async def test_the_list_shows_live_workers_with_their_slots(scene: Scene) -> None:
    """One dash for each slot; those with a job lead to it."""
    async with web_of(scene.app, ann()) as web:
        answer = await web.get("/workers")
    text = text_of(answer)
    assert "1 live worker, 2 of 4 slots busy" in text
    running = [
        job for jobs in scene.jobs.values() for job in jobs if (await job.arefresh()).state == "running"
    ]
    assert len(running) == 2
    for job in running:
        assert f'href="/jobs/{job.id}"' in answer.text
    assert answer.text.count('class="sl sl-free"') == 2


async def test_workers_show_what_they_use_without_being_asked(scene: Scene) -> None:
    """As their last heartbeat says; one that does not say shows nothing."""
    uses: list[tuple[int | None, float | None]] = [(61_400_000, 0.42), (None, None)]
    for memory, cpu in uses:
        beat = HeartbeatRequest(
            scope=Scope.all(), worker=WORKER, state="idle", renew_every=4 * SECOND, memory=memory, cpu=cpu
        )
        assert await scene.store.registry.heartbeat(beat)
        async with web_of(scene.app, ann(Role.VIEWER)) as web:
            card, page = text_of(await web.get("/workers")), text_of(await web.get(PAGE))
        for words in ("61 MB", "42 % CPU"):
            assert (words in card) is (memory is not None)
        for words in ("61 MB without child processes", "42 % of a processor"):
            assert (words in page) is (memory is not None)
    assert scene.worker.asked == []


async def test_silent_workers_are_counted_and_shown_on_request(scene: Scene) -> None:
    """After fifteen seconds without a heartbeat."""
    scene.clock.advance(16)
    async with web_of(scene.app, ann()) as web:
        live, everything = text_of(await web.get("/workers")), text_of(await web.get("/workers?show=all"))
        one = text_of(await web.get(PAGE))
    assert "No worker is live" in live
    assert "1 worker is silent" in live
    assert WORKER not in live
    assert WORKER in everything
    assert "It is silent" in one
    assert "2 jobs of it will be taken back" in one


async def test_a_worker_shows_its_jobs_its_failures_and_what_is_late(scene: Scene) -> None:
    """The error of the job that waits for its next attempt; the last fifth of a timeout is marked."""
    scene.clock.advance(25 * 60)
    async with web_of(scene.app, ann()) as web:
        answer = await web.get(PAGE)
    text = text_of(answer)
    assert "foreignwordError" in text
    assert "close to its timeout" in text
    assert answer.text.count("sl-late") == 3  # two slots and the legend


async def test_a_worker_is_asked_from_its_page(scene: Scene) -> None:
    """It answers itself: slots, memory, processor time."""
    async with web_of(scene.app, ann(Role.VIEWER)) as web:
        text = text_of(await web.post(f"{PAGE}/status"))
    assert scene.worker.asked == ["status"]
    for said in ("61 MB", "42 % of a processor", "blocked by a handler", "1 handler ignores its timeout"):
        assert said in text
    assert "mail.send307d65acmedefaultloop12.5s" in text.replace(" ", "")


async def test_stacks_are_for_administrators_and_escaped(scene: Scene) -> None:
    """They show the code of handlers."""
    async with web_of(scene.app, ann(Role.MANAGER)) as web:
        assert (await web.post(f"{PAGE}/dump")).status_code == 403
        assert "/dump" not in (await web.get(PAGE)).text
    async with web_of(scene.app, ann()) as web:
        scene.worker.stacks = f"Thread {PAYLOAD}"
        text = text_of(await web.post(f"{PAGE}/dump", data={"memory": "true"}))
    assert scene.worker.asked == ["memory"]
    assert f"Thread {PAYLOAD}" in text


async def test_a_worker_is_paused_from_its_page(scene: Scene) -> None:
    """By the form that the page has; the audit says who and why."""
    async with web_of(scene.app, ann(Role.OPERATOR)) as web:
        (form,) = [
            fields
            for action, fields in Markup((await web.get(PAGE)).text).forms
            if action == "/do/workers.pause"
        ]
        form["note"] = "a deploy"
        done = await web.post("/do/workers.pause", data=form)
    assert (done.status_code, done.headers["location"]) == (303, PAGE)
    assert scene.worker.asked == ["pause"]
    (entry, *_) = (await scene.app.audit.afind(kind="workers.pause")).items
    assert (entry.actor, entry.note) == ("ann", "a deploy")


@pytest.mark.parametrize("path", ["/workers", PAGE, f"{PAGE}/status", f"{PAGE}/dump"])
async def test_for_a_caller_of_one_tenant_there_are_no_workers(scene: Scene, path: str) -> None:
    """They serve all tenants, and their pages show whose jobs run."""
    async with web_of(scene.app, ann(Role.ADMIN, "acme")) as web:
        method = "POST" if path.endswith(("status", "dump")) else "GET"
        assert (await web.request(method, path)).status_code == 404


async def test_a_worker_that_does_not_exist_is_not_there(scene: Scene) -> None:
    """Nor is one whose name only looks like one."""
    async with web_of(scene.app, ann()) as web:
        assert (await web.get("/workers/elsewhere")).status_code == 404
        assert (await web.post("/workers/elsewhere/status")).status_code == 404


async def test_the_list_shows_the_duties_and_who_does_them(scene: Scene) -> None:
    """Each with its last pass and its error, escaped; the leader is marked, and operators may make a pass."""
    async with web_of(scene.app, ann()) as web:
        before = text_of(await web.get("/workers"))
    assert "nobody does them" in before
    now = scene.clock.now()
    reports = DutyReports(
        now,
        (
            DutyReport(
                name="prune", worker=WORKER, began_at=now, took=1_000, late=0, next_at=now, did="3 removed"
            ),
            DutyReport(
                name="clean",
                worker=WORKER,
                began_at=now,
                took=0,
                late=0,
                next_at=now,
                failures=2,
                error="<script>",
            ),
        ),
    )
    lead = LeadRequest(scope=Scope.all(), name="duties", worker=WORKER, lease=60 * SECOND, reports=reports)
    await scene.app.client.store.registry.lead(lead)
    async with web_of(scene.app, ann()) as web:
        answer = await web.get("/workers")
    text = text_of(answer)
    assert f"done by {WORKER}" in text
    assert "does the duties" in text
    assert "3 removed" in text
    assert "failed 2 times" in text
    assert "&lt;script&gt;" in answer.text
    assert 'action="/do/duties.run"' in answer.text
    async with web_of(scene.app, ann(Role.VIEWER)) as web:
        assert "/do/duties.run" not in (await web.get("/workers")).text
