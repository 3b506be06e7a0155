"""The ambient tenant of enqueues and handlers, and the isolation of tenants (S8-S10, S22)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fairlane import (
    SYSTEM,
    Context,
    Fairlane,
    InvalidJob,
    JobNotFound,
    Task,
    TenantMismatch,
    current_job,
    current_tenant,
)
from fairlane.app.task.context import AttemptControl
from fairlane.model.scope import Scope
from tests.app.world import World, handling, note


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A task that takes anything."""
    return app.task(name="note")(note)


def context_of(task: Task[..., None], tenant: str = "acme", correlation_id: str | None = None) -> Context:
    """Make the context of a handler, as a worker will."""
    job = task.using(tenant=tenant, correlation_id=correlation_id).enqueue("running")
    return Context(tenant=tenant, attempt=1, show=lambda: job, fence=1, control=AttemptControl())


# ── the tenant of an enqueue ─────────────────────────────────────────────────


def test_the_named_tenant_wins_then_the_ambient_one_then_system(app: Fairlane, task: Task[..., None]) -> None:
    """S10: in this order, under open tenancy."""
    assert task.enqueue("a").tenant == SYSTEM
    with app.tenant("acme"):
        assert task.enqueue("a").tenant == "acme"
        assert task.using(tenant="acme").enqueue("a").tenant == "acme"
    assert task.using(tenant="globex").enqueue("a").tenant == "globex"


def test_the_ambient_tenant_satisfies_required_tenancy(world: World) -> None:
    """S7, S10: it is a name from the application's own authentication like any other."""
    app = world.app(tenancy="required")
    task = app.task(name="note")(note)
    with app.tenant("acme"):
        assert task.enqueue("a").tenant == "acme"


def test_another_tenant_inside_a_tenant_is_refused_before_the_store_is_asked(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S9: alone, in a batch, and by naming `system`."""
    for name in ("globex", SYSTEM):
        with app.tenant("acme"), pytest.raises(TenantMismatch) as caught:
            app.enqueue_many([task.bind("a"), task.using(tenant=name).bind("b")])
        assert (caught.value.tenant, caught.value.scope) == (name, "acme")
    assert world.asked == []


def test_a_system_task_cannot_be_enqueued_from_inside_a_tenant(world: World, app: Fairlane) -> None:
    """S8: it would leave the tenant's walls."""
    task = app.task(name="sweep", system=True)(note)
    with app.tenant("acme"), pytest.raises(TenantMismatch):
        task.enqueue("a")
    assert world.asked == []


def test_tenants_nest_only_into_themselves(app: Fairlane) -> None:
    """The same tenant is fine, another is refused, and what was before comes back."""
    with app.tenant("acme"):
        with app.tenant("acme"):
            assert current_tenant() == "acme"
        with pytest.raises(TenantMismatch), app.tenant("globex"):
            pass
        assert current_tenant() == "acme"
    with pytest.raises(LookupError):
        current_tenant()


def test_an_illegal_tenant_name_is_refused_at_the_door(app: Fairlane) -> None:
    """S3."""
    with pytest.raises(InvalidJob) as caught, app.tenant("a b"):
        pass
    assert caught.value.problems[0].field == "tenant"


def test_a_tenant_ends_with_its_block_also_after_an_error(app: Fairlane) -> None:
    """Whatever happens inside."""
    with pytest.raises(ZeroDivisionError), app.tenant("acme"):
        _ = 1 / 0
    with pytest.raises(LookupError):
        current_tenant()


async def test_each_asyncio_task_has_its_own_tenant(app: Fairlane) -> None:
    """Requests served side by side do not see each other's."""
    names = [f"t{n}" for n in range(20)]
    everyone_is_inside = asyncio.Barrier(len(names))

    async def serve(name: str) -> str:
        with app.tenant(name):
            await everyone_is_inside.wait()
            return current_tenant()

    assert await asyncio.gather(*map(serve, names)) == names


def test_a_new_thread_has_no_tenant(app: Fairlane) -> None:
    """What a thread does is not covered by the block that started it."""
    seen: list[str] = []

    def look() -> None:
        try:
            seen.append(current_tenant())
        except LookupError:
            seen.append("none")

    with app.tenant("acme"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == ["none"]


# ── inside a handler ─────────────────────────────────────────────────────────


def test_a_handler_acts_for_its_own_tenant(app: Fairlane, task: Task[..., None]) -> None:
    """S9, S10: enqueues go to it, and it is known by name."""
    with handling(context_of(task)):
        assert current_tenant() == "acme"
        assert current_job().task == "note"
        assert task.enqueue("child").tenant == "acme"
        with pytest.raises(TenantMismatch):
            task.using(tenant="globex").enqueue("child")
    with pytest.raises(LookupError):
        current_job()


def test_a_tenant_block_is_no_handler(app: Fairlane) -> None:
    """There is a tenant, but no job."""
    with app.tenant("acme"), pytest.raises(LookupError, match="does not run in a handler"):
        current_job()


def test_a_child_inherits_the_correlation_of_the_running_job(task: Task[..., None]) -> None:
    """S22: inherited from the running job, else given, else the job's own id."""
    context = context_of(task, correlation_id="trace-1")
    with handling(context):
        assert task.enqueue("child").correlation_id == "trace-1"
        assert task.using(correlation_id="other").enqueue("child").correlation_id == "trace-1"
        with pytest.raises(InvalidJob):
            task.using(correlation_id="").enqueue("child")
    assert task.using(correlation_id="given").enqueue("x").correlation_id == "given"
    alone = task.enqueue("x")
    assert alone.correlation_id == str(alone.id)


def test_the_running_job_is_the_parent_unless_another_is_named(task: Task[..., None]) -> None:
    """S22: what a handler enqueues hangs below its job, but never across tenants."""
    other = task.using(tenant="acme").enqueue("other")
    context = context_of(task)
    with handling(context):
        assert task.enqueue("child").parent_id == context.job.id
        assert task.using(parent=other.id).enqueue("child").parent_id == other.id
    with handling(context_of(task, tenant=SYSTEM), is_system=True):
        assert task.using(tenant="acme").enqueue("child").parent_id is None
    assert other.parent_id is None


def test_a_system_handler_may_act_for_any_tenant(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S8: only if its task is declared so; otherwise `system` is a tenant like any other."""
    job = context_of(task, tenant=SYSTEM)
    with handling(job, is_system=True):
        assert task.enqueue("x").tenant == SYSTEM
        assert task.using(tenant="acme").enqueue("x").tenant == "acme"
        with app.tenant("globex"):
            assert task.enqueue("x").tenant == "globex"
            with pytest.raises(TenantMismatch):
                task.using(tenant="acme").enqueue("x")
        assert sum(app.jobs.count().values()) == 4
        assert sum(app.jobs.count(tenant="acme").values()) == 1
    with handling(job), pytest.raises(TenantMismatch):
        task.using(tenant="acme").enqueue("x")


# ── reading ──────────────────────────────────────────────────────────────────


def test_inside_a_tenant_only_its_jobs_exist(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S9: by id, by filter, by count; a foreign id answers exactly like an unknown one."""
    mine = task.using(tenant="acme").enqueue("a")
    theirs = task.using(tenant="globex").enqueue("b")
    assert {job.id for job in app.jobs.find()} == {mine.id, theirs.id}
    assert [job.id for job in app.jobs.find(tenant="globex")] == [theirs.id]
    with app.tenant("acme"):
        assert [job.id for job in app.jobs.find()] == [mine.id]
        assert sum(app.jobs.count().values()) == 1
        assert [job.id for job in app.jobs.peek("default")] == [mine.id]
        assert app.jobs.cancel(theirs.id) == {}
        assert app.jobs.run_now(theirs.id) == 0
        for ask in (app.jobs.get, app.jobs.explain):
            with pytest.raises(JobNotFound):
                ask(theirs.id)
        for method in (theirs.refresh, theirs.cancel, theirs.result):
            with pytest.raises(JobNotFound):
                method()
    assert {record.state for record in world.stored()} == {"ready"}


def test_naming_a_foreign_tenant_while_reading_is_refused_before_the_store_is_asked(
    world: World, app: Fairlane
) -> None:
    """S9."""
    with app.tenant("acme"):
        for ask in (
            lambda: app.jobs.find(tenant="globex"),
            lambda: app.jobs.count(tenant="globex"),
            lambda: app.jobs.peek("default", tenant="globex"),
        ):
            with pytest.raises(TenantMismatch):
                ask()
    assert world.asked == []


def test_every_request_carries_the_narrowest_scope(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S9: a store behind a wall of its own can rely on it."""
    job = task.using(tenant="acme").enqueue("a")
    job.refresh()
    with app.tenant("acme"):
        task.enqueue("b")
        app.jobs.count()
    app.jobs.count(tenant="globex")
    assert [request.scope for _, request in world.asked] == [
        Scope.all(),
        Scope("acme"),
        Scope("acme"),
        Scope("acme"),
        Scope("globex"),
    ]
