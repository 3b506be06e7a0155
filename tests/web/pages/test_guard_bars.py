"""Breakers and budgets on the overview, on tenants' and tasks' pages: within what the viewer may see."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from fairlane import Rate
from fairlane.model.access import Role
from fairlane.model.instants import HOUR, to_datetime
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import BreakerRules, Rules, Subject, SubjectKind, TaskRules
from fairlane.store.contract.policies import PutRequest
from fairlane.worker.startup.declare import declare_policies
from tests.contract.world import ALL, World
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import FOREIGN, MINE, Scene, filled

AI = Subject(SubjectKind.BUDGET, "ai")
GATEWAY = Subject(SubjectKind.BREAKER, "gateway")
TAG = Subject(SubjectKind.TASK, "mail.send")


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


class Text(str):
    """A text of a page, in which words are looked for whatever the space between elements is."""

    __slots__ = ()

    def __contains__(self, words: object) -> bool:
        """Whether it has these words."""
        return super().__contains__(re.sub(r"\s+", "", str(words)))


async def markup_of(scene: Scene, path: str, tenant: str | None = None, role: Role = Role.OPERATOR) -> Markup:
    """Return a page as somebody sees it."""
    async with web_of(scene.app, ann(role, tenant)) as web:
        answer = await web.get(path)
    assert answer.status_code == 200
    return Markup(answer.text)


async def text_of(scene: Scene, path: str, tenant: str | None = None, role: Role = Role.OPERATOR) -> Text:
    """Return the text of a page as somebody sees it."""
    return Text(re.sub(r"\s+", "", (await markup_of(scene, path, tenant, role)).text))


async def spend(scene: Scene, *, per_tenant: bool = False, ceiling: int = 500) -> None:
    """Let acme spend 120 and globex 300."""
    await declare_policies(scene.app, scene.store)
    rules = BudgetRules(ceiling * 10**6, "USD", alert_at=(80, 100), per_tenant=per_tenant)
    await scene.store.policies.put(PutRequest(scope=ALL, rules={AI: rules, TAG: TaskRules(budget="ai")}))
    await scene.app.tasks.aresume("mail.send")
    await scene.app.tenants.aresume(FOREIGN)
    world = World(scene.store, scene.clock)
    for tenant, amount in ((MINE, 120), (FOREIGN, 300)):
        await world.enqueue(tenant, queue="spending", task="mail.send")
        await world.settle(await world.claim_one("spending"), spent=amount * 10**6)


async def test_a_shared_budget_shows_whose_part_is_whose(scene: Scene) -> None:
    """On the overview the whole, on a tenant's page its part of it, on a task's page that of the task."""
    await spend(scene)
    overview = await text_of(scene, "/")
    assert "Budget ai nearly spent 420.00 of 500.00 USD a month 84 % spent" in overview
    assert "1 budget is nearly spent." in overview
    assert "Budget ai is at 84 %" in overview
    tenant = await text_of(scene, f"/tenants/{MINE}")
    assert "84 % spent, 120.00 of it by acme" in tenant
    task = await text_of(scene, "/tasks/mail.send")
    assert "420.00 of 500.00 USD a month 84 % spent" in task


async def test_a_caller_of_one_tenant_sees_of_a_shared_budget_what_its_own_jobs_have_spent(
    scene: Scene,
) -> None:
    """S9: neither the ceiling that all share nor what others have spent of it."""
    await spend(scene)
    for path in ("/", f"/tenants/{MINE}"):
        text = await text_of(scene, path, MINE)
        assert "120.00 USD a month" in text
        assert not re.search("420|300[.]00|500[.]00|84%", text)


async def test_a_caller_of_one_tenant_sees_its_own_account(scene: Scene) -> None:
    """With the ceiling, which it has for itself alone; the account of another does not exist for it."""
    await spend(scene, per_tenant=True)
    for path in ("/", f"/tenants/{MINE}"):
        text = await text_of(scene, path, MINE)
        assert "120.00 of 500.00 USD a month 24 % spent" in text
        assert "300.00" not in text
    overview = await text_of(scene, "/")
    assert "Budget ai of globex 300.00 of 500.00 USD" in overview
    assert "Budget ai of acme 120.00 of 500.00 USD" in overview
    await scene.app.budgets.aset("ai", ceiling=120)
    guards = await text_of(scene, "/guards")
    assert "Budget ai of globex and 1 more tenant is spent: 300.00 of 120.00 USD." in guards


async def test_a_spent_budget_needs_attention(scene: Scene) -> None:
    """With when its period ends, since nothing of it starts before."""
    await spend(scene)
    await scene.app.budgets.aset("ai", ceiling=400)
    text = await text_of(scene, "/")
    assert "1 budget is spent." in text
    assert "420.00 of 400.00 USD; the month ends" in text


async def test_an_open_breaker_is_shown_to_operators_of_all_tenants_alone(scene: Scene) -> None:
    """S9: breakers belong to all tenants."""
    rules: dict[Subject, Rules] = {TAG: TaskRules(breaker="gateway"), GATEWAY: BreakerRules()}
    await scene.store.policies.put(PutRequest(scope=ALL, rules=rules))
    await scene.app.breakers.aopen("gateway", reason="the gateway is being moved")
    for path in ("/", f"/tenants/{MINE}", "/tasks/mail.send"):
        assert "Breaker gateway open" in await text_of(scene, path)
    for path in ("/", f"/tenants/{MINE}"):
        assert "Breaker" not in await text_of(scene, path, MINE)


async def test_a_full_gate_is_on_the_overview(scene: Scene) -> None:
    """It belongs to all tenants, too."""
    assert "Gate door full 2 of 2 in it" in await text_of(scene, "/")
    assert "Gate door" not in await text_of(scene, "/", MINE)


async def held_job(scene: Scene, rules: dict[Subject, Rules], task: TaskRules) -> UUID:
    """Return a job that waits under these rules."""
    await scene.app.tasks.aresume("mail.send")
    await scene.store.policies.put(PutRequest(scope=ALL, rules={**rules, TAG: task}))
    return (await World(scene.store, scene.clock).enqueue(MINE, queue="held", task="mail.send")).id


async def test_the_page_of_a_job_says_which_breaker_holds_it_and_until_when(scene: Scene) -> None:
    """An end that is known, or what ends it; the link to the guards is for those who may open that page."""
    job = await held_job(scene, {GATEWAY: BreakerRules()}, TaskRules(breaker="gateway"))
    await scene.app.breakers.aopen("gateway", reason="x")
    text = await text_of(scene, f"/jobs/{job}")
    assert "lets nobody else pass now: breaker gateway, until it is closed or reset" in text
    await scene.app.breakers.aopen("gateway", reason="x", until=to_datetime(scene.clock.now() + HOUR))
    for tenant in (None, MINE):
        page = await markup_of(scene, f"/jobs/{job}", tenant)
        assert "breakergateway,notbefore" in re.sub(r"\s+", "", page.text)
        assert ("/guards#breakers" in page.links) is (tenant is None)


async def test_the_page_of_a_job_says_which_gate_holds_it(scene: Scene) -> None:
    """Nobody knows when a job in it ends."""
    await scene.app.gates.aset("door", limit=0)
    job = await held_job(scene, {}, TaskRules(gate="door"))
    text = await text_of(scene, f"/jobs/{job}")
    assert "its gate is full: gate door, until a job in it ends or its limit is raised." in text


async def test_the_page_of_a_job_says_which_rate_holds_it_and_until_when(scene: Scene) -> None:
    """The rate of its task was used by the job before it."""
    world = World(scene.store, scene.clock)
    await scene.app.tasks.aresume("mail.send")
    await scene.store.policies.put(PutRequest(scope=ALL, rules={TAG: TaskRules(rate=Rate(1, "hour"))}))
    await world.enqueue(MINE, queue="held", task="mail.send")
    job = await world.enqueue(MINE, queue="held", task="mail.send")
    await world.claim_one("held")
    text = await text_of(scene, f"/jobs/{job.id}")
    assert "a rate spaces its starts out: task mail.send, not before" in text


async def test_the_page_of_a_job_says_which_budget_holds_it_and_until_when(scene: Scene) -> None:
    """Until the next period."""
    rules = BudgetRules(0, "USD", on_spent="park")
    job = await held_job(scene, {AI: rules}, TaskRules(budget="ai"))
    text = await text_of(scene, f"/jobs/{job}")
    assert "its budget has no room for another job: budget ai, not before" in text


async def test_a_group_of_dead_letters_warns_while_the_breaker_of_its_task_is_open(scene: Scene) -> None:
    """In the list, above the decision, and where all of them are run again."""
    rules: dict[Subject, Rules] = {GATEWAY: BreakerRules(), TAG: TaskRules(breaker="gateway")}
    await scene.store.policies.put(PutRequest(scope=ALL, rules=rules))
    group = next(one for one in await scene.app.dead.agroups() if one.fingerprint)
    path = f"/dead?fingerprint={group.fingerprint}"
    assert "breaker gateway" not in await text_of(scene, path, role=Role.ADMIN)
    await scene.app.breakers.aopen("gateway", reason="x")
    text = await text_of(scene, path, role=Role.ADMIN)
    assert "breaker gateway open" in text
    assert "What these jobs call is still out of order: breaker gateway is open" in text
    assert "Breaker gateway is not closed: they would wait behind it. Makes" in text
    assert "gateway" not in await text_of(scene, path, MINE, Role.ADMIN)


async def test_the_answer_of_the_dead_letters_counts_all_of_them_beside_a_chosen_failure(
    scene: Scene,
) -> None:
    """The list beside it has all failures, too."""
    groups = [one for one in await scene.app.dead.agroups() if one.fingerprint]
    every = sum(one.letters for one in groups)
    assert every > groups[0].letters
    text = await text_of(scene, f"/dead?fingerprint={groups[0].fingerprint}", role=Role.ADMIN)
    assert f"{every} dead letters await a review" in text


async def test_events_of_budgets_say_amounts_and_times_in_words(scene: Scene) -> None:
    """Whoever may see the guards gets there; for a tenant the subject is a text."""
    await spend(scene, per_tenant=True, ceiling=120)
    await scene.tell()
    for tenant in (None, MINE):
        page = await markup_of(scene, "/events?kind=budget_spent", tenant)
        text = re.sub(r"\s+", " ", page.text)
        assert "Budget ai is spent: 120.00 of 120.00 USD; no job has room until the period ends" in text
        assert "120000000" not in text
        assert ("/guards#budgets" in page.links) is (tenant is None)
