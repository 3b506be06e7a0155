"""Where a job comes from: parent, correlation and creator, as stored (S22). They decide nothing."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.lifecycle.states import FINISHED, State
from fairlane.model.scope import Scope
from tests.contract.world import ENDING_IN, World, failed


async def test_without_a_correlation_id_the_id_of_the_job_stands_for_it(world: World) -> None:
    """S22: each job of a batch gets its own."""
    jobs = await world.enqueue_many(2)
    assert [job.correlation_id for job in jobs] == [str(job.id) for job in jobs]
    assert await world.find_all(correlation_id=str(jobs[0].id)) == [jobs[0]]


async def test_a_given_correlation_id_is_kept_for_life(world: World) -> None:
    """S22: waiting, running, retried and finished."""
    job = await world.enqueue(correlation_id="order-7")
    assert job.correlation_id == "order-7"
    assert (await world.run(failed())).correlation_id == "order-7"
    world.advance(1)
    assert (await world.run()).correlation_id == "order-7"


async def test_jobs_of_one_correlation_are_found_together_in_every_home(world: World) -> None:
    """S22: newest first, whatever became of them; another correlation is not among them."""
    claims = [
        await world.bring_to(state, queue=f"q-{state}", correlation_id="order-7")
        for state in (State.SUCCEEDED, State.DEAD, State.CANCELLED, State.RUNNING, State.READY)
    ]
    await world.enqueue(correlation_id="order-70")
    found = await world.find_all(correlation_id="order-7")
    assert [job.id for job in found] == [claim.job.id for claim in reversed(claims)]


async def test_the_same_correlation_id_in_two_tenants_stays_apart(world: World) -> None:
    """S22, S9: a tenant finds its own alone."""
    ours = await world.enqueue("acme", correlation_id="order-7")
    theirs = await world.enqueue("globex", correlation_id="order-7")
    assert await world.find_all(Scope("acme"), correlation_id="order-7") == [ours]
    assert await world.find_all(Scope("globex"), correlation_id="order-7") == [theirs]


async def test_a_parent_is_a_link_that_finds_the_children(world: World) -> None:
    """S22: the parent itself is not among them, nor is a grandchild."""
    parent = await world.enqueue()
    first = await world.enqueue(parent_id=parent.id)
    second = await world.enqueue(parent_id=parent.id)
    grandchild = await world.enqueue(parent_id=first.id)
    assert (parent.parent_id, first.parent_id) == (None, parent.id)
    assert await world.find_all(parent_id=parent.id) == [second, first]
    assert await world.find_all(parent_id=first.id) == [grandchild]


async def test_a_parent_need_not_exist(world: World) -> None:
    """S22: the link is not checked; the parent may be pruned, or of another system."""
    child = await world.enqueue(parent_id=UUID(int=7))
    assert child.parent_id == UUID(int=7)
    assert (await world.claim_one()).job.parent_id == UUID(int=7)


async def test_a_link_to_the_job_of_another_tenant_shows_nothing_of_it(world: World) -> None:
    """S22, S9: a parent is a link within one tenant; the other's job neither shows nor is shown."""
    theirs = await world.enqueue("globex")
    ours = await world.enqueue("acme", parent_id=theirs.id)
    assert await world.find_all(Scope("globex"), parent_id=theirs.id) == []
    assert await world.find_all(Scope("acme"), parent_id=theirs.id) == [ours]
    assert not await world.is_known(theirs.id, Scope("acme"))


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_the_end_of_a_parent_leaves_its_children_alone(world: World, state: State) -> None:
    """S22: and so does the end of a child with its parent."""
    ending = ENDING_IN[state]
    assert ending is not None
    parent = await world.bring_to(State.RUNNING)
    waiting = await world.enqueue(parent_id=parent.job.id)
    delayed = await world.enqueue(parent_id=parent.job.id, delay=10)
    await world.bring_to(state, queue="other", parent_id=parent.job.id)
    assert await world.get(parent.job.id) == parent.job
    await world.settle(parent, ending)
    assert [await world.get(job.id) for job in (waiting, delayed)] == [waiting, delayed]


async def test_cancelling_a_parent_cancels_that_one_alone(world: World) -> None:
    """S22: the store has no cascade; asking for descendants is the caller's loop."""
    parent = await world.enqueue()
    child = await world.enqueue(parent_id=parent.id)
    await world.cancel(parent.id)
    assert await world.get(child.id) == child
    assert (await world.claim_one()).job.id == child.id


async def test_a_correlation_id_is_kept_by_a_dead_letter(world: World) -> None:
    """S22: what a person finds first about a failure is where it came from."""
    parent = UUID(int=7)
    claim = await world.bring_to(State.DEAD, correlation_id="order-7", parent_id=parent)
    letter = await world.letter(claim.job.id)
    assert letter is not None
    assert (letter.job.correlation_id, letter.job.parent_id) == ("order-7", parent)


async def test_who_created_a_job_is_kept_for_life(world: World) -> None:
    """S22: through a failed attempt, the next one and the end."""
    job = await world.enqueue(created_by="ann@example.org")
    assert job.created_by == "ann@example.org"
    assert (await world.run(failed())).created_by == "ann@example.org"
    world.advance(1)
    assert (await world.run()).created_by == "ann@example.org"


async def test_a_job_whose_creator_is_not_named_has_none(world: World) -> None:
    """S22: unlike the correlation id nothing stands for it, and no filter finds it."""
    job = await world.enqueue()
    assert job.created_by is None
    assert await world.find_all(created_by=str(job.id)) == []
    assert await world.find_all() == [job]


async def test_jobs_of_one_creator_are_found_together_in_every_home(world: World) -> None:
    """S22, S51: newest first, whatever became of them; another creator's are not among them."""
    claims = [
        await world.bring_to(state, queue=f"q-{state}", created_by="ann")
        for state in (State.SUCCEEDED, State.DEAD, State.CANCELLED, State.RUNNING, State.READY)
    ]
    await world.enqueue(created_by="anne")
    found = await world.find_all(created_by="ann")
    assert [job.id for job in found] == [claim.job.id for claim in reversed(claims)]


async def test_the_same_creator_in_two_tenants_stays_apart(world: World) -> None:
    """S22, S9: a search under the scope of one tenant finds none of the other."""
    ours = await world.enqueue("acme", created_by="ann")
    theirs = await world.enqueue("globex", created_by="ann")
    assert await world.find_all(Scope("acme"), created_by="ann") == [ours]
    assert await world.find_all(Scope("globex"), created_by="ann") == [theirs]


async def test_a_repeat_by_somebody_else_answers_with_the_first_creator(world: World) -> None:
    """S22, S13: who asks is not compared; only task and arguments are."""
    first = await world.enqueue(idempotency_key="k", created_by="ann")
    again = await world.enqueue(idempotency_key="k", created_by="ben")
    assert again == first


async def test_a_job_that_replaces_a_dead_one_has_its_own_creator(world: World) -> None:
    """S22, S13: the correlation id links the two; each says who asked for it."""
    dead = await world.bring_to(State.DEAD, idempotency_key="k", created_by="ann")
    new = await world.enqueue(idempotency_key="k", created_by="ben", on_duplicate="replace_dead")
    assert new.correlation_id == dead.job.correlation_id
    assert new.created_by == "ben"
