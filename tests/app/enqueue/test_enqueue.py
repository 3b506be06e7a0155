"""From calls to stored jobs: repeats, refusals, warnings, and enqueues whose outcome is unknown."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fairlane import (
    Closed,
    DuplicateJob,
    EnqueueUnknown,
    Fairlane,
    IdempotencyMismatch,
    InvalidJob,
    Limits,
    QueueFull,
    Refused,
    State,
    StoreBusy,
    StoreUnavailable,
    Task,
    UnknownTenant,
    WaitingLimitReached,
)
from fairlane.app.enqueue.refusals import refusal_error
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import HoldRequest, PutRequest
from tests.app.world import World, ids_of, note


async def declare(world: World, **rules: Any) -> None:
    """Put declared rules: queue `default` and tenants."""
    queue = QueueRules(**rules)
    request = PutRequest(scope=Scope.all(), rules={Subject(SubjectKind.QUEUE, "default"): queue})
    await world.oracle.policies.put(request)


# ── one and many ─────────────────────────────────────────────────────────────


def test_an_enqueue_gives_the_stored_job(world: World, task: Task[..., None]) -> None:
    """Everything a caller wants to know is there at once."""
    job = task.using(tags=["b", "a"], metadata={"plan": "pro"}).enqueue("hello")
    assert (job.tenant, job.queue, job.task, job.state) == ("acme", "default", "note", State.READY)
    assert (job.created, job.is_finished, job.attempt, job.failures) == (True, False, 0, 0)
    assert job.tags == {"a", "b"}
    assert job.metadata == {"plan": "pro"}
    assert job.correlation_id == job.idempotency_key == str(job.id)
    assert job.enqueued_at == job.run_at == datetime.fromtimestamp(world.clock.now() / 1e6, UTC)
    assert world.one().id == job.id


async def test_the_async_twin_does_the_same(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """And starts no thread for it."""
    one = await task.aenqueue("hello")
    two, three = await app.aenqueue_many([task.bind("a"), task.bind("b")])
    assert [record.id for record in world.stored()] == [one.id, two.id, three.id]
    assert not app.client.portal.is_open
    await app.aclose()


def test_a_batch_is_one_request_and_keeps_its_order(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S12: all become visible at once; ids grow."""
    jobs = app.enqueue_many(task.using(tenant=f"t{n}").bind(n) for n in range(5))
    assert world.verbs() == ["enqueue"]
    assert [job.tenant for job in jobs] == ["t0", "t1", "t2", "t3", "t4"]
    assert ids_of(jobs) == [record.id for record in world.stored()]


# ── repeats ──────────────────────────────────────────────────────────────────


def test_a_repeated_key_gives_the_first_job(world: World, task: Task[..., None]) -> None:
    """S13: whatever its state, marked as not created."""
    keyed = task.using(idempotency_key="fax-7")
    first, again = keyed.enqueue("a"), keyed.enqueue("a")
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id == world.one().id


async def test_a_repeated_key_gives_the_first_job_when_it_has_ended(
    world: World, task: Task[..., None]
) -> None:
    """S13: a finished job answers too."""
    first = await task.using(idempotency_key="k").aenqueue("a")
    await world.succeed()
    again = await task.using(idempotency_key="k").aenqueue("a")
    assert (again.id, again.state, again.created) == (first.id, State.SUCCEEDED, False)


def test_a_key_belongs_to_one_tenant(world: World, task: Task[..., None]) -> None:
    """S13: unique per (tenant, key)."""
    assert task.using(idempotency_key="k").enqueue("a").created
    assert task.using(idempotency_key="k", tenant="globex").enqueue("a").created


def test_a_key_with_other_arguments_is_a_mismatch(task: Task[..., None]) -> None:
    """S13: the error names the job that has the key."""
    first = task.using(idempotency_key="k").enqueue("a")
    with pytest.raises(IdempotencyMismatch, match="'k'") as caught:
        task.using(idempotency_key="k").enqueue("b")
    assert caught.value.existing == first.id


def test_a_key_with_another_task_is_a_mismatch(app: Fairlane, task: Task[..., None]) -> None:
    """S13: the same arguments do not make it the same."""
    task.using(idempotency_key="k").enqueue("a")
    other = app.task(name="other")(note)
    with pytest.raises(IdempotencyMismatch):
        other.using(tenant="acme", idempotency_key="k").enqueue("a")


def test_a_repeat_raises_if_the_caller_wants_to_hear_of_it(task: Task[..., None]) -> None:
    """S13: `on_duplicate="raise"`."""
    strict = task.using(idempotency_key="k", on_duplicate="raise")
    first = strict.enqueue("a")
    with pytest.raises(DuplicateJob) as caught:
        strict.enqueue("a")
    assert caught.value.existing == first.id


async def test_a_dedup_key_gives_the_unfinished_job_and_is_free_afterwards(
    world: World, task: Task[..., None]
) -> None:
    """S14: at most one that is delayed, ready or running."""
    keyed = task.using(dedup_key="sync")
    first = await keyed.aenqueue("a")
    again = await keyed.aenqueue("other arguments")
    assert (again.id, again.created) == (first.id, False)
    await world.succeed()
    later = await keyed.aenqueue("a")
    assert later.created
    assert later.id != first.id


async def test_a_dedup_key_until_started_is_free_from_the_claim_on(world: World, app: Fairlane) -> None:
    """S14: declared on the task."""
    task = app.task(name="sync", dedup_until="started")(note).using(dedup_key="k")
    await task.aenqueue("a")
    await world.claim()
    assert (await task.aenqueue("a")).created


def test_equal_keys_inside_a_batch_make_one_job(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """S15: each item sees those before it."""
    jobs = app.enqueue_many([task.using(idempotency_key="k").bind("a")] * 3)
    assert [job.created for job in jobs] == [True, False, False]
    assert set(ids_of(jobs)) == {world.one().id}


async def test_a_repeat_never_counts_against_a_limit(world: World, task: Task[..., None]) -> None:
    """S15: keys are looked at before limits."""
    await declare(world, limits=Limits(waiting=1, on_full="reject"))
    first = await task.using(idempotency_key="k").aenqueue("a")
    assert (await task.using(idempotency_key="k").aenqueue("a")).id == first.id


# ── refusals of the store ────────────────────────────────────────────────────


async def test_a_full_tenant_is_refused_and_nothing_is_stored(world: World, task: Task[..., None]) -> None:
    """S16, S17: with the figures."""
    await declare(world, limits=Limits(waiting=1, on_full="reject"))
    await task.aenqueue("a")
    with pytest.raises(WaitingLimitReached) as caught:
        await task.aenqueue("b")
    error = caught.value
    assert (error.tenant, error.queue, error.waiting, error.limit) == ("acme", "default", 1, 1)
    assert len(world.stored()) == 1


async def test_a_full_queue_is_refused(world: World, task: Task[..., None]) -> None:
    """S18: over all tenants."""
    await declare(world, max_waiting=1)
    await task.aenqueue("a")
    with pytest.raises(QueueFull) as caught:
        await task.using(tenant="globex").aenqueue("b")
    assert (caught.value.queue, caught.value.waiting, caught.value.limit) == ("default", 1, 1)


async def test_what_is_closed_takes_no_jobs(world: World, task: Task[..., None]) -> None:
    """S46: with the subject and the reason."""
    hold = HoldRequest(
        scope=Scope.all(), subject=Subject(SubjectKind.QUEUE, "default"), who="ops", reason="moving: east"
    )
    await world.oracle.policies.close(hold)
    with pytest.raises(Closed) as caught:
        await task.aenqueue("a")
    assert (caught.value.subject, caught.value.reason) == ("queue default", "moving: east")


async def test_an_undeclared_tenant_is_refused_where_tenants_are_declared(world: World) -> None:
    """S7: known only to the store, shown like any other problem of the item."""
    app = world.app(tenancy="declared")
    task = app.task(name="note")(note)
    known = Subject(SubjectKind.TENANT, "acme")
    await world.oracle.policies.put(PutRequest(scope=Scope.all(), rules={known: TenantRules()}))
    assert (await task.using(tenant="acme").aenqueue("a")).created
    calls = [task.using(tenant=name).bind("a") for name in ("acme", "globex", "acme", "initech")]
    with pytest.raises(UnknownTenant) as caught:
        await app.aenqueue_many(calls)
    assert [(one.index, one.field, one.code) for one in caught.value.problems] == [
        (1, "tenant", "unknown_tenant"),
        (3, "tenant", "unknown_tenant"),
    ]
    assert len(world.stored()) == 1


async def test_several_refusals_are_one_error_that_lists_the_others(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S12: the first decides the type, all stand in the message."""
    first = await task.using(idempotency_key="k").aenqueue("a")
    await declare(world, limits=Limits(waiting=1, on_full="reject"))
    calls = [task.using(idempotency_key="k").bind("b"), task.bind("c"), task.using(tenant="globex").bind("d")]
    with pytest.raises(IdempotencyMismatch) as caught:
        await app.aenqueue_many(calls)
    assert str(first.id) in str(caught.value)
    assert "also refused:\n  [1] tenant acme has 1 waiting jobs in queue default" in str(caught.value)
    assert len(world.stored()) == 1


def test_a_refusal_of_any_kind_has_an_error() -> None:
    """No kind falls through, also one that cannot happen to a fresh id."""
    job = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0)
    for kind in RefusalKind:
        error = refusal_error([Refusal(0, kind, "a", "q", "queue q: x", job.id)], [job])
        assert isinstance(error, Refused | InvalidJob)
        assert str(error)


# ── warnings ─────────────────────────────────────────────────────────────────


async def test_a_job_above_a_limit_that_warns_is_stored_and_told_of_once(
    world: World, app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """S17: event `job_limit_warning`, once a tenant and queue, with the highest count."""
    await declare(world, limits=Limits(waiting=1))
    with caplog.at_level(logging.WARNING, "fairlane"):
        await app.aenqueue_many([task.bind(n) for n in range(4)])
    assert len(world.stored()) == 4
    (record,) = caplog.records
    told = {name: getattr(record, name) for name in ("event", "tenant", "queue", "waiting", "limit")}
    assert told == {
        "event": "job_limit_warning",
        "tenant": "acme",
        "queue": "default",
        "waiting": 4,
        "limit": 1,
    }


def test_large_payloads_are_logged_by_size_once_a_task(
    world: World, app: Fairlane, task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """S5: over 10 KB warns; the content is not shown."""
    with caplog.at_level(logging.WARNING, "fairlane"):
        app.enqueue_many([task.bind(["z" * 1900] * 6), task.bind(["z" * 1900] * 7), task.bind("small")])
    (record,) = caplog.records
    assert (record.__dict__["event"], record.__dict__["count"]) == ("payload_large", 2)
    largest = max(len(stored.payload) + len(stored.metadata) for stored in world.stored())
    assert record.__dict__["largest"] == largest
    assert record.getMessage().startswith(
        f"task note: 2 payload(s) over 10240 bytes, the largest has {largest};"
    )
    assert "zzz" not in caplog.text


def test_sensitive_arguments_are_logged_by_path_and_never_by_value(
    task: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """S6: the default policy is to warn."""
    with caplog.at_level(logging.WARNING, "fairlane"):
        assert task.enqueue({"password": "hunter2-is-secret"}).created
    (record,) = caplog.records
    assert record.__dict__["event"] == "payload_sensitive"
    assert "arguments.text.password" in caplog.text
    assert "hunter2" not in caplog.text


def test_nothing_is_logged_for_what_the_policy_allows(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """S6: `allow` is silent."""
    app = world.app(payload={"sensitive": "allow"})
    with caplog.at_level(logging.INFO, "fairlane"):
        app.task(name="note")(note).enqueue({"password": "hunter2"})
    assert caplog.records == []


# ── unknown outcomes ─────────────────────────────────────────────────────────


async def test_an_enqueue_whose_reply_was_lost_is_repeated_under_the_same_ids(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S15: stored once, and the caller hears nothing of it."""
    world.fail_after = [EnqueueUnknown("cut off")]
    jobs = await app.aenqueue_many([task.bind("a"), task.bind("b")])
    first, second = (request for _, request in world.asked)
    assert [job.id for job in first.jobs] == [job.id for job in second.jobs] == ids_of(jobs)
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert [record.id for record in world.stored()] == ids_of(jobs)


async def test_an_enqueue_that_never_arrived_is_stored_by_the_repeat(
    world: World, task: Task[..., None]
) -> None:
    """S15: the other half of not knowing."""
    world.fail_before = [EnqueueUnknown("cut off")]
    assert (await task.aenqueue("a")).id == world.one().id


@pytest.mark.parametrize("second", [EnqueueUnknown("cut off"), StoreUnavailable("away"), StoreBusy("busy")])
async def test_after_one_repeat_the_caller_is_told_with_the_ids(
    world: World, task: Task[..., None], second: Exception
) -> None:
    """It is not known whether the job is stored: the ids let the caller look."""
    world.fail_after = [EnqueueUnknown("cut off"), second]  # type: ignore[list-item]
    with pytest.raises(EnqueueUnknown) as caught:
        await task.aenqueue("a")
    assert world.verbs() == ["enqueue", "enqueue"]
    assert str(world.one().id) in str(caught.value)
    assert not caught.value.retry_safe


async def test_a_store_that_is_away_is_not_asked_twice(world: World, task: Task[..., None]) -> None:
    """S66: clients fail fast; nothing was stored, and the caller may repeat."""
    world.fail_before = [StoreUnavailable("away")]
    with pytest.raises(StoreUnavailable) as caught:
        await task.aenqueue("a")
    assert caught.value.retry_safe
    assert world.verbs() == ["enqueue"]


def test_an_application_without_a_url_has_a_store_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first call makes it and says so, once; nothing before: tests import applications they never use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRLANE_URL", raising=False)
    file = tmp_path / "fairlane.db"
    for level, words in ((logging.WARNING, "creating"), (logging.INFO, "using")):
        app = Fairlane()
        task = app.task(name="note")(note)
        caplog.clear()
        with caplog.at_level(logging.INFO, "fairlane"):
            assert file.exists() == (level == logging.INFO)
            job = task.using(tenant="acme").enqueue("a")
            assert asyncio.run(app.jobs.aget(job.id)).state is State.READY
        (told,) = [one for one in caplog.records if getattr(one, "event", "") == "store_default"]
        assert told.levelno == level
        assert f"no store is configured; {words} {file}; set one in" in told.getMessage()
        app.close()


def test_the_folder_is_that_of_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that goes elsewhere afterwards does not leave a store in every folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRLANE_URL", raising=False)
    (tmp_path / "else #where?").mkdir()
    monkeypatch.chdir(tmp_path / "else #where?")
    app = Fairlane()
    _ = app.settings
    monkeypatch.chdir(tmp_path)
    app.task(name="note")(note).using(tenant="acme").enqueue("a")
    app.close()
    assert (tmp_path / "else #where?" / "fairlane.db").exists()
    assert not (tmp_path / "fairlane.db").exists()
