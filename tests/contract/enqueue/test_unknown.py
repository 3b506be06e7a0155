"""An application that loses the store's answers: whatever it repeats, there is one job (S15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from fairlane import EnqueueUnknown, Fairlane, Task
from fairlane.model.lifecycle.states import State
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import EnqueueReply, EnqueueRequest
from fairlane.store.opening import StoreClock, register_scheme
from tests.contract.world import World, ruined

WAYS = ["lost on the way there", "lost on the way back"]


class Lossy:
    """A store whose enqueues get lost for a while, or their answers do. It is not closed here."""

    def __init__(self, store: Store) -> None:
        """Stand before a store."""
        self._store = store
        self.losses: list[str] = []
        self.jobs = self.upkeep = self
        self.registry = store.registry

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """Lose the request or the answer, if that is planned."""
        way = self.losses.pop(0) if self.losses else None
        if way == WAYS[0]:
            raise EnqueueUnknown(way)
        reply = await self._store.jobs.enqueue(request)
        if way is not None:
            raise EnqueueUnknown(way)
        return reply

    async def aclose(self) -> None:
        """Leave it to its owner."""


@pytest.fixture
def lossy(world: World) -> Lossy:
    """The store of the world, behind a bad line."""
    return Lossy(world.store)


@pytest.fixture
async def task(lossy: Lossy) -> AsyncIterator[Task[..., Any]]:
    """A task of an application on that line."""

    def opened(_url: str, _clock: StoreClock | None) -> Store:
        return cast("Store", lossy)

    register_scheme("lossy", opened)
    app = Fairlane("lossy://here", config={})

    @app.task(name="noop")
    async def noop(n: int) -> None: ...

    yield noop
    await app.aclose()


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("losses", [[one] for one in WAYS] + [[one, other] for one in WAYS for other in WAYS])
async def test_an_unknown_enqueue_becomes_one_job(
    world: World, lossy: Lossy, task: Task[..., Any], losses: list[str], key: str | None
) -> None:
    """S15: by itself or by the caller's repeat, and it is the caller's own enqueue that made it."""
    lossy.losses = list(losses)
    calling = task.using(tenant="acme", idempotency_key=key)
    if len(losses) == 1:
        job = await calling.aenqueue(1)
    else:
        with pytest.raises(EnqueueUnknown) as caught:
            await calling.aenqueue(1)
        assert caught.value.retry_safe is (key is not None)
        job = await caught.value.arepeat()
    assert job.created
    assert [one.id for one in await world.find_all()] == [job.id]


@pytest.mark.parametrize("way", WAYS)
async def test_a_repeat_finds_its_job_whatever_became_of_it(
    world: World, lossy: Lossy, task: Task[..., Any], way: str
) -> None:
    """S15: repeated once more after it ran, or stored only then."""
    lossy.losses = [way] * 2
    with pytest.raises(EnqueueUnknown) as caught:
        await task.using(tenant="acme").aenqueue(1)
    if way == WAYS[0]:
        await caught.value.arepeat()
    await world.run(ruined())
    job = await caught.value.arepeat()
    assert (job.state, job.created) == (State.DEAD, True)
    assert len(await world.find_all()) == 1


async def test_a_repeat_of_what_another_job_answers_for_is_not_created(
    world: World, lossy: Lossy, task: Task[..., Any]
) -> None:
    """S13: that one was there before."""
    keyed = task.using(tenant="acme", idempotency_key="k")
    first = await keyed.aenqueue(1)
    lossy.losses = [WAYS[1]] * 2
    with pytest.raises(EnqueueUnknown) as caught:
        await keyed.aenqueue(1)
    again = await caught.value.arepeat()
    assert (again.id, again.created) == (first.id, False)
    assert len(await world.find_all()) == 1
