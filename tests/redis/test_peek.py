"""A peek of many jobs is many scripts, each of which goes on from what the one before knew (S65)."""

from __future__ import annotations

from typing import Any

import pytest

import fairlane.store.redis.jobs.peek as peeks
from fairlane.model.job import Claim
from fairlane.store.contract.policies import PutRequest
from tests.contract.read.test_peek import RULES, crowd
from tests.contract.world import ALL, World
from tests.redis.rendering import rendered
from tests.redis.test_batches import store_client_of


@pytest.mark.parametrize(("step", "inline"), [(1, 16), (2, 16), (1, 1)])
@pytest.mark.parametrize("rules", RULES)
async def test_a_peek_by_many_scripts_gives_the_order_of_a_claim(
    world: World, rules: str, step: int, inline: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is due, what rates, gates and limits hold, who has been served: each script knows it all."""
    monkeypatch.setattr(peeks, "_STEP", step)
    with rendered(MAX_INLINE_STRANDS=inline):
        await crowd(world)
        await world.store.policies.put(PutRequest(scope=ALL, rules=RULES[rules]))
        before = await world.sight()
        peeked = [job.id for job in await world.peek(20)]
        assert await world.sight() == before
        assert peeked == [claim.job.id for claim in await world.claim(20)]


async def test_a_peek_begins_anew_if_what_it_has_seen_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others claim between its scripts: what it gives is what they left."""
    monkeypatch.setattr(peeks, "_STEP", 1)
    jobs = await world.enqueue_many(5)
    store_client = store_client_of(world)
    run = store_client.run
    claimed: list[Claim] = []

    async def disturbed(name: str, *arguments: Any, **options: Any) -> Any:
        answer = await run(name, *arguments, **options)
        if name == "jobs/peek" and not claimed:
            claimed.extend(await world.claim(4))
        return answer

    monkeypatch.setattr(store_client, "run", disturbed)
    assert [job.id for job in await world.peek(5)] == [jobs[4].id]
