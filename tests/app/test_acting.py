"""Who acts, and from where; and which operation each change of an operator carries (S60)."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from fairlane import Context, Fairlane, Limits, Task
from fairlane.app.acting import current_actor, current_origin, from_origin
from fairlane.app.task.context import AttemptControl
from fairlane.model.journal.operations import Operation
from fairlane.runtime.identity import host
from tests.app.world import World, handling

ME = f"{getpass.getuser()}@{host()}"


def operations(world: World) -> list[Operation]:
    """Return what the store was told of operations."""
    found = [getattr(request, "operation", None) for _, *requests in world.asked for request in requests]
    return [one for one in found if one is not None]


def journal(world: World, name: str = "audit") -> list[tuple[str, str | None, str, dict[str, Any]]]:
    """Return what waits in a journal: kind, tenant, subject and body."""
    pending = world.oracle.journal._core.books.journals[name].pending  # type: ignore[index] # a name
    return [
        (one.entry.kind, one.entry.tenant, one.entry.subject, msgspec.json.decode(one.entry.body))
        for one in pending
    ]


def context_of(task: Task[..., None]) -> Context:
    """Make the context of a handler, as a worker will."""
    job = task.enqueue("running")
    return Context(tenant=job.tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())


# ── who ──────────────────────────────────────────────────────────────────────


def test_the_name_in_code_wins_then_the_environment_then_user_and_host(
    app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an inner name over an outer one."""
    assert current_actor() == ME
    monkeypatch.setenv("FAIRLANE_ACTOR", "deploy-bot")
    assert current_actor() == "deploy-bot"
    with app.acting_as("ann@example.org"):
        assert current_actor() == "ann@example.org"
        with app.acting_as("ben"):
            assert current_actor() == "ben"
        assert current_actor() == "ann@example.org"
    monkeypatch.setenv("FAIRLANE_ACTOR", "")
    assert current_actor() == ME


@pytest.mark.parametrize("name", ["", "  ", "x" * 2_001, "a\x00b", 5])
def test_a_name_that_says_nothing_or_cannot_be_stored_is_refused(app: Fairlane, name: Any) -> None:
    """By the field that it came from."""
    with pytest.raises(ValueError, match="acting_as: "), app.acting_as(name):
        pass


def test_so_is_one_of_the_environment(world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is needed; a call that changes nothing needs none."""
    monkeypatch.setenv("FAIRLANE_ACTOR", "x" * 2_001)
    with pytest.raises(ValueError, match="FAIRLANE_ACTOR: use at most 2,000"):
        app.queues.pause("bulk", reason="x")
    assert world.asked == []
    assert app.queues.get("bulk").paused is None


def test_the_variable_is_no_setting(app: Fairlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read beside them."""
    monkeypatch.setenv("FAIRLANE_ACTOR", "ann")
    assert app.settings.name == "fairlane"


def test_a_block_says_where_changes_come_from() -> None:
    """The command line does."""
    assert current_origin() == "python"
    with from_origin("cli", "ann"):
        assert (current_origin(), current_actor()) == ("cli", "ann")
        with from_origin("python"):
            assert (current_origin(), current_actor()) == ("python", "ann")
    assert (current_origin(), current_actor()) == ("python", ME)


# ── what ─────────────────────────────────────────────────────────────────────

Change = Callable[[Fairlane, Any], Coroutine[Any, Any, object]]

CHANGES: dict[str, Change] = {
    "jobs.cancel": lambda app, job: app.jobs.acancel(job.id, reason="why"),
    "jobs.run_now": lambda app, job: app.jobs.arun_now(job.id, note="why"),
    "jobs.edit": lambda app, job: app.jobs.aedit(job.id, priority=5, note="why"),
    "jobs.fail": lambda app, job: app.jobs.afail(job.id, retry=False, reason="why"),
    "jobs.condemn": lambda app, job: app.jobs.acondemn(job.id, reason="why"),
    "queues.pause": lambda app, _: app.queues.apause("bulk", reason="why"),
    "queues.close": lambda app, _: app.queues.aclose("bulk", reason="why"),
    "queues.set": lambda app, _: app.queues.aset("bulk", max_waiting=5, note="why"),
    "tenants.set": lambda app, _: app.tenants.aset("acme", limits=Limits(running=1), note="why"),
    "tenants.pause": lambda app, _: app.tenants.apause("acme", reason="why"),
    "tasks.pause": lambda app, _: app.tasks.apause("note", reason="why"),
    "gates.set": lambda app, _: app.gates.aset("mails", limit=5, note="why"),
}


@pytest.mark.parametrize("action", CHANGES)
async def test_every_change_carries_who_what_and_why(
    world: World, app: Fairlane, task: Task[..., None], action: str
) -> None:
    """And so leaves an entry in the audit, in the same step."""
    job = await task.using(delay=60).aenqueue("x")
    with app.acting_as("ann"):
        await CHANGES[action](app, job)
    (done,) = operations(world)
    assert (done.action, done.actor, done.origin, done.note) == (action, "ann", "python", "why")
    ((kind, _, _, body),) = journal(world)
    assert (kind, body["actor"], body["note"]) == (action, "ann", "why")


@pytest.mark.parametrize(("verb", "undo"), [("pause", "resume"), ("close", "reopen"), ("set", "reset")])
@pytest.mark.parametrize("space", ["queues", "tenants"])
async def test_what_is_undone_is_audited_as_well(
    world: World, app: Fairlane, verb: str, undo: str, space: str
) -> None:
    """Once: what changes nothing leaves nothing."""
    controls = getattr(app, space)
    options = {"reason": "x"} if verb != "set" else {"limits": Limits(running=1)}
    await getattr(controls, f"a{verb}")("acme", **options)
    await getattr(controls, f"a{undo}")("acme", note="over")
    await getattr(controls, f"a{undo}")("acme", note="over")
    word = "open" if undo == "reopen" else undo
    assert [kind for kind, *_ in journal(world)] == [f"{space}.{verb}", f"{space}.{word}"]


async def test_taking_a_running_job_back_is_audited(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S72: as letting it fail is."""
    job = await task.aenqueue("x")
    await world.claim()
    await app.jobs.atake_back(job.id, reason="wrong machine")
    ((kind, _, subject, body),) = journal(world)
    assert (kind, subject, body["note"]) == ("jobs.take_back", str(job.id), "wrong machine")


def test_a_job_in_hand_is_cancelled_by_somebody(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """As one that is named."""
    job = task.enqueue("x")
    with app.acting_as("ann"):
        job.cancel("too late")
    (done,) = operations(world)
    assert (done.action, done.actor, done.note) == ("jobs.cancel", "ann", "too late")


async def test_a_job_that_is_made_again_is_audited_as_made(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """By the id of the new one."""
    job = await task.aenqueue("x")
    await world.succeed()
    copy = await app.jobs.aagain(job.id, note="lost")
    ((kind, tenant, subject, body),) = journal(world)
    assert (kind, tenant, subject) == ("jobs.again", "acme", str(copy.id))
    assert body["after"]["parent"] == str(job.id)


def test_who_is_given_is_who_acts(world: World, app: Fairlane) -> None:
    """In the policy and in the audit."""
    app.queues.pause("bulk", reason="x", who="ops")
    assert journal(world)[0][3]["actor"] == "ops"


async def test_declaring_a_tenant_is_audited_if_it_changes_something(world: World, app: Fairlane) -> None:
    """With the rules before and after."""
    await app.tenants.adeclare("acme", weight=2, note="signed up")
    await app.tenants.adeclare("acme", weight=2)
    ((kind, tenant, subject, body),) = journal(world)
    assert (kind, tenant, subject, body["note"]) == ("tenants.declare", "acme", "tenant acme", "signed up")
    assert body["after"]["declared"]["weight"] == 2


@pytest.mark.parametrize(
    ("verb", "result"), [("purge", {"cancelled": 2}), ("forget", {"erased": 2, "running": 0})]
)
async def test_clearing_a_tenant_leaves_an_entry_at_its_start_and_one_at_its_end(
    world: World, app: Fairlane, task: Task[..., None], verb: str, result: dict[str, int]
) -> None:
    """With the number of matches, and what came of it."""
    await task.aenqueue("a")
    await task.aenqueue("b")
    await getattr(app.tenants, f"a{verb}")("acme", reason="left us")
    first, last = journal(world)
    assert (first[:3], last[:3]) == ((f"tenants.{verb}", "acme", "tenant acme"),) * 2
    begin, end = first[3]["details"], last[3]["details"]
    assert (begin["step"], begin["matches"], first[3]["note"]) == ("begin", 2, "left us")
    assert (end["step"], end["run"], end["result"]) == ("end", begin["run"], result)


def test_what_a_handler_asks_for_is_no_operator_s_doing(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S60: it leaves nothing but that it acted for all tenants; the policy says which task."""
    job = task.enqueue("x")
    with handling(context_of(task)):
        app.jobs.cancel(job.id)
        app.tenants.purge("acme", reason="x")
        with app.as_system(reason="their API answers 429"):
            app.tenants.pause("acme", reason="too fast")
    assert operations(world) == []
    assert [kind for kind, *_ in journal(world)] == ["as_system"]
    paused = app.tenants.get("acme").paused
    assert paused is not None
    assert paused.who == "task note"


def test_inside_a_tenant_an_operator_is_one(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """The block says for whom, not that nobody acts."""
    job = task.enqueue("x")
    with app.tenant("acme"), app.acting_as("ann"):
        app.jobs.cancel(job.id)
    assert [(kind, body["actor"]) for kind, _, _, body in journal(world)] == [("jobs.cancel", "ann")]


# ── orders to workers ────────────────────────────────────────────────────────


def test_a_note_of_an_order_must_be_one_that_can_be_kept(world: World, app: Fairlane) -> None:
    """Before a worker is looked for."""
    for verb in ("pause", "resume", "stop"):
        with pytest.raises(ValueError, match="note: has a control character"):
            getattr(app.workers, verb)("w", note="\x00")
    assert world.asked == []
