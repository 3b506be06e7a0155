"""Keys: one hash tag, nothing that grows for ever, names that stay what they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from fairlane.model.errors import ConfigError
from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.opening import open_store
from fairlane.store.redis.keys import NAMES, KeyNames
from tests.contract.world import CANCELLED, SUCCEEDED, World, failed, ruined
from tests.oracle.clock import DrivenClock
from tests.servers.valkey import ValkeyServer

LASTING = ("queues", "meta", "rules", "policies", "policies_named", "rate_states", "estimates", "hints")
"""Configuration, and what is counted by the names in it."""

OWED = ("tenant_queues", "tenant_queue_names")
"""The clocks of tenants that have had more than their share: they stay until others have caught up (S41)."""


JOURNALS = ("pending_entries", "entries", "journal_ends")
"""What happened and who did what: a duty numbers and trims it (S60, S76)."""


def kinds(keys: Iterable[Any]) -> set[str]:
    """Name what kinds of keys these are."""
    names = sorted(NAMES.items(), key=lambda one: -len(one[1]))
    found = set()
    for key in keys:
        rest = key.decode().removeprefix(KeyNames("fairlane").base)
        found.add(
            next(
                name
                for name, short in names
                if rest == short or (short[-1] == ":" and rest.startswith(short))
            )
        )
    return found


async def test_after_retention_nothing_is_left_but_configuration_and_counters(
    world: World, client: Redis
) -> None:
    """S52: every kind of job came and went, some over limits, rates and gates."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(running=3), cost="seconds"))
    await world.declare(SubjectKind.QUEUE, "rated", QueueRules(rate=Rate(1, "second")))
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    for ending in (SUCCEEDED, CANCELLED, ruined(), failed()):
        await world.enqueue(
            idempotency_key=type(ending).__name__, dedup_key="d", correlation_id="c", expires_in=MINUTE
        )
        await world.run(ending)
    await world.enqueue_many(5, "globex")
    await world.enqueue_many(3, "globex", task="gated")
    await world.enqueue_many(3, queue="rated")
    for _ in range(40):
        for claim in await world.claim(9, queue_requests=[("default", 9), ("rated", 9)]):
            await world.settle(claim)
        world.advance(1)
    world.advance(3_600)
    await world.expire()
    assert {job.state for job in await world.find_all()} == {State.SUCCEEDED, State.CANCELLED, State.DEAD}
    await world.prune(succeeded=0, cancelled=0, dead=0, results=0, keys=0)
    assert await world.find_all() == []
    assert kinds(client.keys()) <= {*LASTING, *OWED, *JOURNALS}


async def test_the_clock_of_a_tenant_that_owes_nothing_is_forgotten(world: World, client: Redis) -> None:
    """S41, S52: once the others have caught up, also if it never comes back."""
    await world.enqueue_many(3, "gone")
    for claim in await world.claim(3):
        await world.settle(claim)
    await world.enqueue_many(9, "there")
    for claim in await world.claim(9):
        await world.settle(claim)
    world.advance(1)
    await world.prune(succeeded=0)
    assert client.hkeys("{fairlane}:t:default") == [b"there"]
    assert client.zrange("{fairlane}:qt", 0, -1) == [b"default\0there"]


async def test_a_tenant_with_many_tasks_leaves_nothing_behind(world: World, client: Redis) -> None:
    """When they are few again its record has their strands, also those at a gate; then all are gone."""
    apart, own_line = {"strands", "strand_heads"}, "{fairlane}:g:default\0door\0acme"
    await world.put_gate("door", "task3", "task5")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    new = [world.new(task=f"task{number}") for number in range(40)]
    await world.send(*new[:10])
    for most, is_wide in ((5, False), (24, True), (3, False)):
        for claim in await world.claim(most):
            await world.settle(claim)
        assert kinds(client.keys()) & apart == (apart if is_wide else set())
        assert client.zcard(own_line) == (2 if is_wide else 0)
        if most == 5:  # both wait at the gate before there are many
            await world.send(*new[10:30])
            await world.send(*new[30:])
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=2))
    left = [new[number].id for number in (3, 5, *range(34, 40))]
    assert [job.id for job in await world.peek(9, scope=Scope("acme"))] == left
    claims = await world.claim(9)
    assert [claim.job.id for claim in claims] == left
    for claim in claims:
        await world.settle(claim)
    world.advance(1)
    await world.prune(succeeded=0)
    assert kinds(client.keys()) <= {*LASTING, *OWED}


async def test_every_key_of_an_installation_is_under_its_hash_tag(world: World, client: Redis) -> None:
    """One installation lives on one shard: a script may touch nothing else."""
    await world.bring_to(State.RUNNING)
    await world.enqueue(delay=SECOND, dedup_key="k", idempotency_key="k", correlation_id="{other}")
    await world.register("w1")
    assert {key[: len(b"{fairlane}:")] for key in client.scan_iter()} == {b"{fairlane}:"}


async def test_two_installations_on_one_server_do_not_meet(world: World, server: ValkeyServer) -> None:
    """Each has its own prefix, whatever its jobs are called."""
    other = World(open_store(f"{server.url}?prefix=other", clock=world.clock), world.clock)
    job = await world.enqueue(idempotency_key="k")
    assert await other.find_all() == []
    assert await other.claim() == []
    reply = await other.send(world.new(idempotency_key="k", fingerprint=b"other"))
    assert [one.is_created for one in reply.enqueued] == [True]
    assert await world.find_all() == [job]
    await other.store.upkeep.aclose()


@pytest.mark.parametrize("prefix", ["", "a b", "{a}", "a" * 65, "ä"])
def test_a_prefix_that_could_be_read_as_something_else_is_refused(prefix: str) -> None:
    """It becomes a hash tag."""
    with pytest.raises(ConfigError, match="prefix"):
        open_store(f"redis://localhost?prefix={prefix}")


TENANT = st.text(
    st.sampled_from("ab*[]:.-_|^$(){}".replace("*", "").replace("{", "").replace("}", "")),
    min_size=1,
    max_size=4,
)
LABEL = st.text(st.sampled_from("a:{}*?[]\\\"' é\u2028"), min_size=1, max_size=5)
NAME = st.text(st.sampled_from("ab0._-"), max_size=3).map("q{}".format)


@given(
    st.lists(
        st.tuples(TENANT, LABEL, LABEL, NAME, NAME), min_size=1, max_size=6, unique_by=lambda one: one[:2]
    )
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
async def test_names_and_labels_never_run_into_each_other(
    server: ValkeyServer, items: list[tuple[str, str, str, str, str]]
) -> None:
    """S3, S4: whatever callers choose is found under its own name, and under no other."""
    clock = DrivenClock()
    tag = UUID(int=abs(hash(tuple(items)))).hex
    world = World(open_store(f"{server.url}?prefix=f{tag}", clock=clock), clock)
    news = [
        world.new(
            tenant.lstrip("-") or "t",
            queue=queue,
            task=task,
            idempotency_key=f"{number}{key}",
            correlation_id=label,
            dedup_key=f"{key}{number}",
        )
        for number, (tenant, key, label, queue, task) in enumerate(items)
    ]
    reply = await world.send(*news)
    assert all(one.is_created for one in reply.enqueued)
    for new in news:
        assert new.id in {job.id for job in await world.find_all(correlation_id=new.correlation_id)}
        own = await world.find_all(Scope(new.tenant))
        assert {job.tenant for job in own} == {new.tenant}
        again = await world.send(msgspec.structs.replace(new, id=world.new().id))
        assert [one.job.id for one in again.enqueued] == [new.id]
    for queue in {new.queue for new in news}:
        claimed = {claim.job.id for claim in await world.claim(9, queue)}
        assert claimed == {new.id for new in news if new.queue == queue}
    await world.check_invariants()
    await world.store.upkeep.aclose()


@pytest.mark.parametrize("field", ["idempotency_key", "dedup_key", "correlation_id"])
async def test_a_label_with_a_nul_is_refused_before_it_is_sent(world: World, field: str) -> None:
    """S3: clients refuse it as well; here it would end a text and begin the next field."""
    with pytest.raises(ValueError, match="NUL"):
        await world.send(world.new("acme", **{field: "a\0b"}))
    assert await world.find_all() == []
