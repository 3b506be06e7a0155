"""Names, keys and tags compare byte for byte, and are stored unchanged (S3, S4)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from tests.contract.world import World

ALIKE = ("k", "K", "k ", " k", "k\u00a0", "k\u200b", "é", "e\u0301", "ß", "ss", "\u0131", "i", "I")
"""Labels that some comparison, somewhere, takes for equal."""

LABELS = (*ALIKE, "鍵", "🔑", "a:b", "a|b", "{a}", "*", "%s'\"\\;--")
"""And some that a store could take for code, a pattern or two names."""

TENANTS = ("acme", "Acme", "ACME", "0", "00", "a:b", "a|b", "a;b", "a%s", "$1", "#.@!~^&()<>[]=+,", "x" * 128)
TASKS = ("noop", "Noop", "_noop", "pkg.mod:noop", "no-op", "0", "T" * 200)
QUEUES = ("default", "0", "a.b", "a-b", "a_b", "q" * 63)


async def test_labels_compare_byte_for_byte(world: World) -> None:
    """S4: case, blanks, accents and forms of the same letter make different tags and correlations."""
    reply = await world.send(*(world.new(tags=(label,), correlation_id=label) for label in LABELS))
    jobs = [one.job for one in reply.enqueued]
    assert [(job.tags, job.correlation_id) for job in jobs] == [((label,), label) for label in LABELS]
    assert await world.find_all() == jobs[::-1]
    for job in jobs:
        assert await world.find_all(tag=job.tags[0]) == [job]
        assert await world.find_all(correlation_id=job.correlation_id) == [job]


async def test_keys_compare_byte_for_byte(world: World) -> None:
    """S4, S13, S14: labels that only look alike are different keys, and the same ones the same."""
    for kind in ("idempotency_key", "dedup_key"):
        jobs = [world.new(task=kind, **{kind: label}) for label in LABELS]
        assert [one.is_created for one in (await world.send(*jobs)).enqueued] == [True] * len(LABELS)
        again = [world.new(task=kind, **{kind: label}) for label in LABELS]
        reply = await world.send(*again)
        assert [one.job.id for one in reply.enqueued] == [job.id for job in jobs]


async def test_the_longest_labels_differ_in_their_last_byte(world: World) -> None:
    """S3, S4: 255 bytes of UTF-8, none of them cut off."""
    longest = ("é" * 127 + "a", "é" * 127 + "b")
    values: list[dict[str, Any]] = [
        {"idempotency_key": one, "dedup_key": one, "correlation_id": one, "tags": (one,)} for one in longest
    ]
    jobs = [await world.enqueue(**one) for one in values]
    for job, label in zip(jobs, longest, strict=True):
        assert await world.find_all(tag=label) == await world.find_all(correlation_id=label) == [job]
    again = [(await world.send(world.new(**one))).enqueued[0].job for one in values]
    assert again == jobs


async def test_odd_but_legal_names_stay_apart(world: World) -> None:
    """S3, S4: each tenant, task and queue counts and is found under its own name alone."""
    names = [(tenant, "default", "noop") for tenant in TENANTS]
    names += [("acme", "default", task) for task in TASKS[1:]]
    names += [("acme", queue, "noop") for queue in QUEUES[1:]]
    await world.send(*(world.new(tenant, queue=queue, task=task) for tenant, queue, task in names))
    assert await world.counts() == Counter((tenant, queue, State.READY) for tenant, queue, _ in names)
    for tenant in TENANTS:
        mine = {job.tenant for job in await world.find_all(Scope(tenant))}
        assert mine == {tenant}
    for task in TASKS[1:]:
        assert [job.task for job in await world.find_all(task=task)] == [task]
    for queue in QUEUES[1:]:
        assert [claim.job.queue for claim in await world.claim(5, queue)] == [queue]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tenant": "a:b", "task": "c"}, {"tenant": "a", "task": "b:c"}),
        ({"tenant": "a", "queue": "b.c", "task": "d"}, {"tenant": "a", "queue": "b", "task": "c.d"}),
        ({"tenant": "a.b", "queue": "c"}, {"tenant": "a", "queue": "b.c"}),
    ],
)
async def test_names_do_not_run_into_each_other(
    world: World, one: dict[str, str], other: dict[str, str]
) -> None:
    """S3, S4: a store that joins names must keep them apart, for keys and for counts."""
    keys = {"idempotency_key": "k", "dedup_key": "k"}
    first, second = world.new(**{**one, **keys}), world.new(**{**other, **keys, "idempotency_key": "k2"})
    reply = await world.send(first, second)
    assert [item.is_created for item in reply.enqueued] == [True, True]
    assert await world.counts() == Counter((job.tenant, job.queue, State.READY) for job in (first, second))


async def test_a_tenant_and_its_key_do_not_run_into_each_other(world: World) -> None:
    """S4, S13, S14: whatever stands between the two in the store."""
    pairs = [("a:b", "c"), ("a", "b:c"), ("a|b", "c"), ("a", "b|c"), ("a.b", "c"), ("a", "b.c")]
    reply = await world.send(*(world.new(t, idempotency_key=k, dedup_key=k) for t, k in pairs))
    assert [one.is_created for one in reply.enqueued] == [True] * len(pairs)
