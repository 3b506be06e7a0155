"""The page of guards: which gate or rate holds work back, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from fairlane import Rate
from fairlane.model.access import Role
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import Subject, SubjectKind, TaskRules
from fairlane.store.contract.policies import PutRequest
from fairlane.worker.startup.declare import declare_policies
from tests.contract.world import ALL, World
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import FOREIGN, Scene, filled

AI = Subject(SubjectKind.BUDGET, "ai")
TAG = Subject(SubjectKind.TASK, "tag")


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


async def guards_of(scene: Scene, role: Role = Role.ADMIN) -> Markup:
    """Return the page."""
    async with web_of(scene.app, ann(role)) as web:
        answer = await web.get("/guards")
    assert answer.status_code == 200
    return Markup(answer.text)


async def test_a_full_gate_is_the_answer(scene: Scene) -> None:
    """With how many ready jobs of its tasks there are, who set the limit, and why."""
    text = re.sub(r"\s+", " ", (await guards_of(scene)).text)
    assert "Gate door is full: 2 of 2" in text
    assert "ready jobs of its tasks wait" in text
    assert "2 running" in text
    assert "of the gate" in text


async def test_a_gate_of_limit_zero_is_closed(scene: Scene) -> None:
    """Which is how operators stop all that passes it."""
    await scene.app.gates.aset("door", limit=0)
    assert "is closed: its limit is 0" in (await guards_of(scene)).text


async def test_a_rate_that_is_used_up_says_until_when(scene: Scene) -> None:
    """Rates of queues, tasks and gates are listed."""
    await scene.app.tenants.aresume(FOREIGN)
    await scene.app.queues.aresume("mail")
    await scene.app.tasks.aresume("mail.send")
    await scene.app.gates.areset("door")
    await scene.app.tasks.aset("mail.send", rate=Rate(1, "hour"))
    await scene.run_next()
    text = re.sub(r"\s+", " ", (await guards_of(scene)).text)
    assert "The rate of task mail.send is used up until" in text
    assert "1/hour" in text


async def test_a_gate_is_changed_from_the_page_and_reset(scene: Scene) -> None:
    """By an administrator; the audit says who and why."""
    async with web_of(scene.app, ann()) as web:
        forms = dict(Markup((await web.get("/guards")).text).forms)
        form = forms["/do/gates.set"] | {"limit": "7", "note": "a second line"}
        assert (await web.post("/do/gates.set", data=form)).status_code == 303
        assert (await scene.app.gates.aget("door")).limit == 7
        assert (await web.post("/do/gates.reset", data=forms["/do/gates.reset"])).status_code == 303
        assert (await scene.app.gates.aget("door")).limit == 3
    (entry, *_) = (await scene.app.audit.afind(kind="gates.set")).items
    assert (entry.actor, entry.note) == ("ann", "a second line")


async def test_only_administrators_change_gates(scene: Scene) -> None:
    """Others see them."""
    forms = (await guards_of(scene, Role.MANAGER)).forms
    assert not [action for action, _ in forms if action.startswith("/do/")]


async def test_a_budget_shows_what_is_spent_by_whom_and_when_it_runs_out(scene: Scene) -> None:
    """With its ceiling, its period, and the mark at 80 percent."""
    await spend(scene, 400)
    page = await guards_of(scene)
    text = re.sub(r"\s+", " ", page.text)
    assert "500.00 USD a month" in text
    assert "400.00" in text
    assert "tenant acme 400.00" in text
    assert "originator ann 400.00" in text
    assert "No gate is full" not in text  # the scene's is


async def test_a_spent_budget_is_an_answer_and_can_be_raised_from_the_page(scene: Scene) -> None:
    """Until its period ends; with a note, as any change."""
    await spend(scene, 500)
    assert "Budget ai is spent: 500.00 of 500.00 USD. Its jobs are dead at once until" in re.sub(
        r"\s+", " ", (await guards_of(scene)).text
    )
    async with web_of(scene.app, ann(Role.ADMIN)) as web:
        form = {"budget": "ai", "ceiling": "700", "note": "launch week", "for": "2h", "next": "/guards"}
        answer = await web.post("/do/budgets.set", data=form)
        assert answer.status_code in {200, 303}, answer.text
    budget = await scene.app.budgets.aget("ai")
    assert (str(budget.ceiling), budget.override is not None) == ("700.00", True)
    assert "launch week" in (await guards_of(scene)).text


async def test_the_page_of_a_job_says_which_budget_holds_it_and_until_when(scene: Scene) -> None:
    """A strand that waits, as `explain` says it."""
    await declare_policies(scene.app, scene.store)
    rules = BudgetRules(0, "USD", on_spent="park")
    await scene.store.policies.put(PutRequest(scope=ALL, rules={AI: rules, TAG: TaskRules(budget="ai")}))
    job = await World(scene.store, scene.clock).enqueue("acme", queue="spending", task="tag")
    waiting = await scene.app.jobs.aexplain(job.id)
    assert (waiting.reason, waiting.subject) == ("budget", "budget ai")
    assert "Raise the ceiling" in waiting.advice
    async with web_of(scene.app, ann(Role.ADMIN)) as web:
        text = re.sub(r"\s+", " ", Markup((await web.get(f"/jobs/{job.id}")).text).text)
    assert "its budget has no room for another job" in text
    assert "budget ai" in text


async def spend(scene: Scene, amount: int) -> None:
    """Let one job of acme spend so much."""
    await declare_policies(scene.app, scene.store)
    await scene.store.policies.put(PutRequest(scope=ALL, rules={TAG: TaskRules(budget="ai")}))
    world = World(scene.store, scene.clock)
    await world.enqueue("acme", queue="spending", task="tag", created_by="ann")
    await world.settle(await world.claim_one("spending"), spent=amount * 10**6)
