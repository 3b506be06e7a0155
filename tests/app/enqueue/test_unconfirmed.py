"""An enqueue that was not confirmed: its error sends the same jobs again, and none is stored twice (S15)."""

from __future__ import annotations

import asyncio
import threading
from copy import copy
from typing import Any

import pytest

from fairlane import EnqueueUnknown, Fairlane, InvalidJob, QueueFull, Task, TenantMismatch
from fairlane.app.task.record import task_record_of
from fairlane.model.errors import StoreBusy, StoreUnavailable
from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.app.world import World, ids_of

LOST = EnqueueUnknown("the answer was lost")
WAYS = ["lost on the way there", "lost on the way back"]


def note(text: str) -> None:
    """Stand for a handler."""


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """Its task."""
    return app.task(name="note")(note)


def lose(world: World, way: str, times: int = 2) -> None:
    """Lose the next requests, or the answers to them."""
    (world.fail_before if way == WAYS[0] else world.fail_after).extend([LOST] * times)


@pytest.mark.parametrize("way", WAYS)
def test_a_repeat_gives_the_job_that_the_call_would_have_given(
    world: World, task: Task[..., None], way: str
) -> None:
    """S15: the same id, stored once, created by the caller's own enqueue."""
    lose(world, way)
    with pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a")
    assert len(world.stored()) == (0 if way == WAYS[0] else 1)
    job = caught.value.repeat()
    assert (job.id, job.created, job.task) == (world.one().id, True, "note")
    assert caught.value.ids == (job.id,)
    assert [request.is_repeated for _, request in world.asked] == [False, True, True]


@pytest.mark.parametrize("way", WAYS)
async def test_the_twin_does_the_same(world: World, task: Task[..., None], way: str) -> None:
    """For callers in an event loop."""
    lose(world, way)
    with pytest.raises(EnqueueUnknown) as caught:
        await task.aenqueue("a")
    job = await caught.value.arepeat()
    assert (job.id, job.created) == (world.one().id, True)


@pytest.mark.parametrize("way", WAYS)
def test_a_repeated_batch_gives_all_its_jobs_in_order(
    world: World, app: Fairlane, task: Task[..., None], way: str
) -> None:
    """S12: also a batch of one, which returns a list as usual."""
    for count in (1, 3):
        before = len(world.stored())
        lose(world, way)
        with pytest.raises(EnqueueUnknown) as caught:
            app.enqueue_many([task.bind(str(n)) for n in range(count)])
        jobs = caught.value.repeat()
        assert ids_of(jobs) == [record.id for record in world.stored()[before:]] == list(caught.value.ids)
        assert [job.created for job in jobs] == [True] * count


async def test_a_job_by_its_name_is_repeated_like_any_other(world: World, app: Fairlane) -> None:
    """Also one whose handler is not here."""
    other = world.app()
    other.task(name="elsewhere")(note)
    tasks = tuple(task_record_of(task, other.settings) for task in other.client.registry)
    record = WorkerRecord(id="w", host="h", pid=1, version="1", queues=("default",), slots=1, tasks=tasks)
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await world.oracle.registry.register(request)
    world.fail_after = [None, LOST, LOST]
    with pytest.raises(EnqueueUnknown) as caught:
        await app.aenqueue_by_name("elsewhere", {"text": "a"}, tenant="acme")
    assert (await caught.value.arepeat()).id == world.one().id


def test_it_may_be_repeated_any_number_of_times(world: World, task: Task[..., None]) -> None:
    """S15: before and after a repeat was answered; each answer is the job as it is then."""
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a")
    jobs = [caught.value.repeat() for _ in range(3)]
    assert {job.id for job in jobs} == {world.one().id}
    asyncio.run(world.succeed())
    again = caught.value.repeat()
    assert (again.id, again.state, again.created) == (jobs[0].id, "succeeded", True)


@pytest.mark.parametrize("still", [LOST, StoreUnavailable("away"), StoreBusy("busy")])
def test_while_nothing_is_known_the_error_is_the_same(
    world: World, task: Task[..., None], still: Exception
) -> None:
    """S66: whatever failed now, the first sending may have arrived; both errors repeat."""
    lose(world, WAYS[0])
    with pytest.raises(EnqueueUnknown) as first:
        task.enqueue("a")
    world.fail_before = [still]  # type: ignore[list-item]
    with pytest.raises(EnqueueUnknown) as second:
        first.value.repeat()
    assert second.value.ids == first.value.ids
    assert second.value.repeat().id == first.value.repeat().id == world.one().id


async def test_a_repeat_is_refused_like_any_enqueue(world: World, task: Task[..., None]) -> None:
    """S15: what never arrived is a new job; it may be tried again when there is room."""
    lose(world, WAYS[0])
    with pytest.raises(EnqueueUnknown) as caught:
        await task.aenqueue("a")
    queue = Subject(SubjectKind.QUEUE, "default")
    for most in (0, 1):
        rules = {queue: QueueRules(max_waiting=most)}
        await world.oracle.policies.put(PutRequest(scope=Scope.all(), rules=rules))
        if most == 0:
            with pytest.raises(QueueFull):
                await caught.value.arepeat()
    assert (await caught.value.arepeat()).id == world.one().id


def test_any_thread_may_repeat(world: World, task: Task[..., None]) -> None:
    """Also one that has an event loop of its own."""
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a")
    found: list[Any] = []

    async def in_a_loop() -> None:
        found.append(await caught.value.arepeat())

    for target in (lambda: found.append(caught.value.repeat()), lambda: asyncio.run(in_a_loop())):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert [job.id for job in found] == [world.one().id] * 2


def test_a_closed_application_opens_anew_for_a_repeat(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """As it does for any call."""
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a")
    app.close()
    opened = world.opened
    assert caught.value.repeat().id == world.one().id
    assert world.opened == opened + 1


def test_a_repeat_acts_for_the_tenant_around_it(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S9: an error that came into another tenant's hands does nothing there."""
    lose(world, WAYS[1])
    with app.tenant("acme"), pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a")
    asked = len(world.asked)
    with app.tenant("globex"), pytest.raises(TenantMismatch):
        caught.value.repeat()
    assert len(world.asked) == asked
    with app.tenant("acme"):
        assert caught.value.repeat().tenant == "acme"
    sent = [request.scope for verb, request in world.asked[asked:] if verb == "enqueue"]
    assert sent == [Scope("acme")]


@pytest.mark.parametrize(
    ("keys", "is_safe"), [([None], False), (["k"], True), (["k", None], False), (["k", "l"], True)]
)
def test_the_call_itself_may_be_made_again_only_if_every_job_has_a_key(
    world: World, app: Fairlane, task: Task[..., None], keys: list[str | None], is_safe: bool
) -> None:
    """S13: without one it makes another job."""
    calls = [task.using(idempotency_key=key).bind("a") for key in keys]
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        app.enqueue_many(calls)
    assert caught.value.retry_safe is is_safe
    before = len(world.stored())
    app.enqueue_many(calls)
    assert (len(world.stored()) == before) is is_safe


def test_nothing_of_the_payload_is_shown(world: World, task: Task[..., None]) -> None:
    """S6: not in the text, not in what a debugger prints of it."""
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        task.enqueue("a secret")
    error = caught.value
    assert str(error.ids[0]) in str(error)
    assert "error.repeat()" in str(error)
    shown = [str(error), repr(error), repr(vars(error))]
    assert not any("secret" in text for text in shown)


def test_a_copy_in_another_process_says_that_it_cannot_repeat(world: World, task: Task[..., None]) -> None:
    """What it would send belongs to the application that sent it; all else of it is there."""
    lose(world, WAYS[1])
    with pytest.raises(EnqueueUnknown) as caught:
        task.using(idempotency_key="k").enqueue("a")
    other = copy(caught.value)  # as pickling it does
    assert (str(other), other.ids, other.retry_safe) == (str(caught.value), caught.value.ids, True)
    with pytest.raises(RuntimeError, match="nothing to repeat here"):
        other.repeat()


def test_what_is_wrong_with_one_job_has_no_place_in_a_batch(app: Fairlane, task: Task[..., None]) -> None:
    """One job is not number 0 of anything; the items of a batch are numbered."""
    bad = task.using(priority=500)
    with pytest.raises(InvalidJob) as one:
        bad.enqueue("a")
    assert "\n  priority: is 500" in str(one.value)
    with pytest.raises(InvalidJob) as two:
        app.enqueue_many([task.bind("a"), bad.bind("a")])
    assert "\n  [1] priority: is 500" in str(two.value)
