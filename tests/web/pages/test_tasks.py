"""The pages of tasks: what can run, how well it goes, and a job enqueued by hand."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from fairlane.model.access import Role
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import MINE, SECRET, Scene, filled

PAGE = "/tasks/mail.send"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


async def test_the_list_shows_each_task_with_its_rules_and_results(scene: Scene) -> None:
    """Queue, handler, workers, gate, and how its finished jobs went."""
    async with web_of(scene.app, ann()) as web:
        text = re.sub(r"\s+", " ", Markup((await web.get("/tasks")).text).text)
    assert "1 task is published" in text
    assert re.search(r"mail\.send paused ?tests\.web\.pages\.scene mail 1 30 min 5 Every 5 minutes", text), (
        text
    )
    assert re.search(r"and 1 more ?door 4 50 % 0 2", text), text


async def test_a_task_has_an_input_for_each_argument(scene: Scene) -> None:
    """As the published schema says; what looks secret is typed unseen."""
    async with web_of(scene.app, ann()) as web:
        html = (await web.get(PAGE)).text
    (form,) = [fields for action, fields in Markup(html).forms if action == "/do/tasks.enqueue"]
    assert {"task", "tenant", "texts.to", "texts.password", "note"} <= set(form)
    assert re.search(r'<input type="password" name="texts\.password"', html)
    assert re.search(r'<input type="text" name="texts\.to"', html)


async def test_a_job_enqueued_by_hand_is_stored_audited_and_shown(scene: Scene) -> None:
    """The form leads to the new job; the audit says who and why, and has no argument."""
    form = {"task": "mail.send", "tenant": MINE, "texts.to": "ann@example.org", "texts.password": SECRET}
    form |= {"queue": "", "priority": "7", "run_at": "", "note": "a customer asked", "next": PAGE}
    async with web_of(scene.app, ann(Role.OPERATOR)) as web:
        answer = await web.post("/do/tasks.enqueue", data=form)
        assert answer.status_code == 303
        shown = await web.get(answer.headers["location"])
    assert shown.status_code == 200
    assert "ann@example.org" in shown.text
    assert SECRET not in shown.text
    job = await scene.app.jobs.aget(answer.headers["location"].removeprefix("/jobs/"))
    assert (job.arguments["to"], job.priority, job.created_by) == ("ann@example.org", 7, "ann")
    (entry, *_) = (await scene.app.audit.afind(kind="tasks.enqueue")).items
    assert (entry.tenant, entry.actor, entry.note) == (MINE, "ann", "a customer asked")
    assert SECRET not in str(entry.details) + str(entry.after)
    assert "ann@example.org" not in str(entry.details) + str(entry.after)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"note": ""}, "note"),
        ({"tenant": "a b"}, "tenant"),
        ({"texts.nobody": "x"}, "arguments.nobody"),
        ({"priority": "many"}, "priority"),
    ],
)
async def test_bad_input_is_said_beside_the_form(scene: Scene, change: dict[str, str], said: str) -> None:
    """And nothing is stored."""
    form = {"task": "mail.send", "tenant": MINE, "texts.to": "x", "note": "why"} | change
    before = (await scene.app.jobs.acount()).total
    async with web_of(scene.app, ann()) as web:
        answer = await web.post("/do/tasks.enqueue", data=form, headers={"hx-request": "true"})
    assert answer.status_code == 422
    assert said in answer.text
    assert (await scene.app.jobs.acount()).total == before


async def test_a_viewer_has_no_form(scene: Scene) -> None:
    """Nor a button that changes something."""
    async with web_of(scene.app, ann(Role.VIEWER)) as web:
        actions = [action for action, _ in Markup((await web.get(PAGE)).text).forms]
    assert not [one for one in actions if one.startswith("/do/")]


async def test_a_task_that_nobody_published_says_so(scene: Scene) -> None:
    """Links of old jobs lead to it."""
    async with web_of(scene.app, ann()) as web:
        answer = await web.get("/tasks/mail.recieve")
    assert answer.status_code == 200
    assert "No worker has published this task" in answer.text
    assert "/do/tasks.enqueue" not in answer.text
