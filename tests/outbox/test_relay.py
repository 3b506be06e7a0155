"""Moving rows: exactly once by id, in order for each tenant, whatever is refused or unreadable."""

from __future__ import annotations

import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairlane import StoreError
from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TenantRules
from fairlane.model.scope import Scope
from fairlane.outbox.backlog import Backlog
from fairlane.outbox.held_tenants import MAX_HELD_TENANTS, HeldTenants
from fairlane.outbox.relay import RelaySession
from fairlane.store.contract.jobs import StopRequest
from tests.app.world import RuntimeClock
from tests.outbox.shop import PlainShop, Shop, eventually


def step_all(session: RelaySession) -> int:
    """Do passes until there is nothing more to do now; return how many rows were stored."""
    stored = 0
    while (passed := session.step()).again_in == 0:
        stored += passed.stored
    return stored


# ── moving ───────────────────────────────────────────────────────────────────


def test_rows_are_moved_in_order_and_are_gone_then(any_shop: Shop) -> None:
    """All of them, whoever they belong to."""
    ids = any_shop.fill(20, "acme", "globex", "initech")
    assert any_shop.relay().drain() == 20
    assert (any_shop.stored(), any_shop.rows()) == (ids, [])
    assert any_shop.relay().drain() == 0


def test_a_row_whose_job_is_stored_already_is_only_removed(shop: Shop) -> None:
    """As after a crash between the two steps; also when the job has ended meanwhile."""
    ids = shop.fill(3)
    kept = shop.rows("seq, id, tenant, format, job, created_at")
    shop.relay().drain()
    shop.app.jobs.cancel(ids[0])
    for row in kept:
        shop.change("INSERT INTO fairlane_outbox VALUES (?, ?, ?, ?, ?, ?, NULL)", *row)
    assert shop.relay().drain() == 3
    assert (shop.stored(), shop.rows()) == (ids, [])


def test_a_big_backlog_is_moved_in_batches(any_shop: Shop) -> None:
    """Ten thousand rows, none twice, all in order."""
    ids = any_shop.fill(10_000, *(f"t{n}" for n in range(7)))
    assert any_shop.relay().drain() == 10_000
    assert any_shop.stored() == ids


def test_a_batch_is_bounded_in_bytes_too(shop: Shop) -> None:
    """A row that is larger than the bound alone still goes."""
    for _ in range(4):
        shop.add(shop.task.bind("x" * 400_000))
    shop.commit()
    backlog = Backlog(shop.connect(), "qmark")
    assert [len(backlog.read(10, size, [])) for size in (1, 1_200_000, 9_000_000)] == [1, 2, 4]
    backlog.close()


def test_two_relays_at_once_store_each_job_once_and_keep_the_order(shop: Shop) -> None:
    """Neither knows of the other, and the application goes on adding."""
    relays = [shop.relay(), shop.relay()]
    for relay in relays:
        relay.start()
    expected: dict[str, list[Any]] = {"acme": [], "globex": [], "initech": []}
    for _ in range(30):
        for n, id in enumerate(shop.fill(30, *expected)):
            expected[list(expected)[n % 3]].append(id)
    eventually(lambda: shop.rows() == [])
    for relay in relays:
        relay.stop()
    assert shop.stored_by_tenant() == expected


def test_many_drains_at_once_are_safe(shop: Shop) -> None:
    """Each reads what the others are just moving."""
    ids = shop.fill(3_000, "acme", "globex")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: shop.relay().drain(), range(4)))
    by_tenant = shop.stored_by_tenant()
    assert (by_tenant["acme"], by_tenant["globex"]) == (ids[::2], ids[1::2])
    assert shop.rows() == []


# ── refused ──────────────────────────────────────────────────────────────────


def test_a_refused_row_keeps_its_tenants_later_rows_waiting_and_nobody_elses(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Also those of other queues; when it may come in, all follow in order."""
    clock = shop.app.client.clock = RuntimeClock()
    bulk = shop.app.task(name="bulk", queue="bulk")(lambda: None)
    (first,) = shop.add(bulk.using(tenant="acme").bind())
    ids = shop.fill(4, "acme", "globex")
    shop.shut(SubjectKind.QUEUE, "bulk")
    with shop.relay().session() as session:
        assert step_all(session) == 2
        assert shop.stored() == ids[1::2]
        assert "tenant acme is held back for" in caplog.text
        assert "stocktaking" in caplog.text
        shop.reopen(SubjectKind.QUEUE, "bulk")
        assert step_all(session) == 0  # not yet: it was told to wait
        clock.now += 2 * SECOND
        assert step_all(session) == 3
    assert shop.stored_by_tenant()["acme"] == [first, *ids[::2]]
    assert shop.rows() == []


def test_a_tenant_that_stays_refused_is_asked_less_and_less_often(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Doubling up to a minute; once a row is stored, it begins anew."""
    clock = shop.app.client.clock = RuntimeClock()
    shop.fill(1)
    shop.shut(SubjectKind.TENANT, "acme")
    asked = []
    with shop.relay().session() as session:
        for _ in range(600):
            before = len(caplog.records)
            step_all(session)
            if len(caplog.records) > before:
                asked.append(clock.now)
            clock.now += SECOND // 2
        gaps = [(later - earlier) / SECOND for earlier, later in pairwise(asked)]
        for n, gap in enumerate(gaps[:6]):
            assert 0.8 * 2**n <= gap <= 1.2 * 2**n + 0.5, gaps
        assert max(gaps) <= 60.5
        shop.reopen(SubjectKind.TENANT, "acme")
        clock.now += 60 * SECOND
        assert step_all(session) == 1
        shop.shut(SubjectKind.TENANT, "acme")
        shop.fill(1)
        step_all(session)
        clock.now += 2 * SECOND
        shop.reopen(SubjectKind.TENANT, "acme")
        assert step_all(session) == 1


def test_a_waiting_limit_lets_in_what_fits_and_keeps_the_rest_in_order(shop: Shop) -> None:
    """As many as there is room for now; nothing is lost, nothing overtakes."""
    clock = shop.app.client.clock = RuntimeClock()
    shop.put(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(waiting=3, on_full="reject")))
    ids = shop.fill(8, "acme", "globex")
    with shop.relay().session() as session:
        assert step_all(session) == 6
        shop.app.jobs.cancel(ids[0])
        clock.now += 2 * SECOND
        assert step_all(session) == 1
    assert shop.stored_by_tenant() == {"acme": ids[0::2], "globex": ids[1:7:2]}
    assert shop.rows() == [str(ids[7])]


def test_what_goes_above_a_warning_limit_is_told(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """S17: stored, and logged as by an enqueue."""
    shop.put(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(waiting=1)))
    shop.fill(2)
    assert shop.relay().drain() == 2
    assert "job_limit_warning" in caplog.text


def test_an_undeclared_tenant_waits_until_it_is_declared(folder: Path) -> None:
    """Where tenancy is `declared`, the store knows, and only later."""
    shop = PlainShop(folder, tenancy="declared")
    shop.fill(1)
    assert shop.relay().drain() == 0
    assert shop.rows("problem") == [None]
    shop.put(SubjectKind.TENANT, "acme", TenantRules())
    assert shop.relay().drain() == 1
    shop.close()


# ── set aside ────────────────────────────────────────────────────────────────

DAMAGE: dict[str, tuple[str, str]] = {
    "no JSON": ("job = x'00ff'", "cannot be decoded"),
    "text": ("job = 'garbage'", "cannot be decoded"),
    "other JSON": ("job = '[1, 2]'", "cannot be decoded"),
    "damaged payload": ('job = replace(job, \'"payload":"\', \'"payload":"AAAA\')', "checksum"),
    "newer format": ("format = 2", "its format is 2, this relay reads 1"),
    "another tenant": ("tenant = 'globex'", "not what its columns say"),
    "another id": ("id = 'x'", "not what its columns say"),
    "illegal queue": ("job = replace(job, '\"default\"', '\"De fault\"')", "not legal"),
    "large number": ("job = replace(job, '\"priority\":0', '\"priority\":9223372036854775808')", "64 bits"),
}


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_a_row_that_can_never_be_stored_is_set_aside_with_the_reason(
    shop: Shop, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Visible in the table and in the log, never lost, and in nobody's way."""
    ids = shop.fill(3)
    change, reason = DAMAGE[kind]
    shop.change(f"UPDATE fairlane_outbox SET {change} WHERE id = ?", str(ids[1]))  # noqa: S608 (as above)
    assert shop.relay().drain() == 2
    assert shop.stored() == [ids[0], ids[2]]
    ((_, problem),) = shop.rows("id, problem")
    assert reason in problem
    assert reason in caplog.text
    assert shop.relay().drain() == 0
    assert len(shop.rows()) == 1


def test_a_row_that_was_put_right_goes_on_its_way(shop: Shop) -> None:
    """By setting its problem to NULL."""
    (id,) = shop.fill(1)
    shop.change("UPDATE fairlane_outbox SET format = 2")
    shop.relay().drain()
    shop.change("UPDATE fairlane_outbox SET format = 1, problem = NULL")
    assert shop.relay().drain() == 1
    assert shop.stored() == [id]


def test_keys_that_are_taken_are_answered_or_set_aside(shop: Shop) -> None:
    """The first job answers for a plain repeat; what asked to be told of it, or differs, cannot be stored."""
    first = shop.app.enqueue_many([shop.task.using(idempotency_key="k").bind("x")])[0]
    once = shop.task.using(idempotency_key="k")
    shop.add(once.bind("x"))
    told, differs = shop.add(once.using(on_duplicate="raise").bind("x"), once.bind("y"))
    last = shop.fill(1)
    assert shop.relay().drain() == 2
    assert shop.stored() == [first.id, *last]
    problems = dict(shop.rows("id, problem"))
    assert f"belongs to job {first.id}" in problems[str(told)]
    assert "another task or arguments" in problems[str(differs)]


def test_a_row_may_replace_a_dead_job(shop: Shop) -> None:
    """S13: however often it is sent, there is one new job, and the dead one stays."""
    keyed = shop.task.using(idempotency_key="k", on_duplicate="replace_dead")
    first = shop.app.enqueue_many([keyed.bind("x")])[0]
    request = StopRequest(scope=Scope.all(), ids=(first.id,))
    shop.app.client.portal.run(_condemn(shop, request))
    (second,) = shop.add(keyed.bind("x"))
    shop.commit()
    assert shop.relay().drain() == 1
    shop.add(keyed.bind("x"))
    shop.commit()
    assert shop.relay().drain() == 1
    assert sorted(shop.stored()) == sorted([first.id, second])
    assert shop.app.jobs.get(second).correlation_id == str(first.id)


async def _condemn(shop: Shop, request: StopRequest) -> None:
    await shop.app.client.store.jobs.condemn(request)


# ── how many are held ────────────────────────────────────────────────────────


def test_when_too_many_tenants_are_held_everybody_rests_until_they_fit() -> None:
    """A statement cannot leave out any number of names."""
    holds = HeldTenants()
    delays = sorted(
        holds.hold(f"t{n}", 0, draw=n / (2 * MAX_HELD_TENANTS)) for n in range(MAX_HELD_TENANTS + 10)
    )
    assert holds.rest(0) == delays[9]
    assert len(holds.held(delays[9])) <= MAX_HELD_TENANTS
    assert holds.rest(delays[9]) == 0
    holds.free("t7")
    assert "t7" not in holds.held(0)


def test_a_statement_can_leave_out_as_many_tenants_as_may_be_held(shop: Shop) -> None:
    """And still finds the others."""
    ids = shop.fill(1)
    backlog = Backlog(shop.connect(), "named")
    held = [f"t{n}" for n in range(MAX_HELD_TENANTS)]
    assert [row.id for row in backlog.read(5, 10**6, held)] == [str(id) for id in ids]
    assert backlog.read(5, 10**6, ["acme", *held[1:]]) == []
    backlog.close()


# ── trouble ──────────────────────────────────────────────────────────────────


def test_an_outage_of_the_store_is_told_once_and_outlasted(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows stay where they are until it is back."""
    caplog.set_level(logging.INFO, "fairlane")
    place = folder / "away"
    shop = PlainShop(folder, f"sqlite:///{place}/fairlane.db")
    shop.jobs_file = place / "fairlane.db"
    ids = shop.fill(5)
    tries: list[int] = []

    def connect() -> Any:
        tries.append(1)
        return shop.connect()

    relay = shop.relay()
    relay._connect = connect
    with relay:
        eventually(lambda: len(tries) == 3)
        assert shop.rows() == [str(id) for id in ids]
        place.mkdir()
        eventually(lambda: "moves jobs again" in caplog.text)
        eventually(lambda: shop.rows() == [])
    assert caplog.text.count("the relay failed and will retry") == 1
    assert shop.stored() == ids
    shop.close()


def test_an_outage_of_the_applications_database_is_outlasted(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that cannot be made, then one without the table: a new one is made each time."""
    caplog.set_level(logging.INFO, "fairlane")
    ids = shop.fill(5)
    made: list[sqlite3.Connection] = []

    def connect() -> Any:
        made.append(sqlite3.connect(":memory:" if len(made) < 1 else shop.file))
        return made[-1]

    relay = shop.relay()
    relay._connect = connect
    with relay:
        eventually(lambda: shop.rows() == [])
    assert "OperationalError: no such table" in caplog.text
    assert len(made) == 2
    with pytest.raises(sqlite3.ProgrammingError):
        made[0].execute("SELECT 1")  # it was closed
    assert shop.stored() == ids


def test_an_application_that_writes_for_long_is_waited_for(shop: Shop) -> None:
    """The store has the job, the row cannot be removed yet: it is repeated, and there is one job."""
    ids = shop.fill(2)
    shop.execute("INSERT INTO orders VALUES ('long')")  # holds the application's file

    def impatient() -> sqlite3.Connection:
        return sqlite3.connect(shop.file, timeout=0.01)

    relay = shop.relay()
    relay._connect = impatient
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        relay.drain()
    assert (shop.stored(), len(shop.rows())) == (ids, 2)
    shop.commit()
    assert relay.drain() == 2
    assert (shop.stored(), shop.rows()) == (ids, [])


def test_the_stores_own_file_is_no_place_for_an_outbox_of_another_library(shop: Shop) -> None:
    """Two libraries on one file destroy it; the error says so."""
    shop.app.jobs.count()
    relay = shop.relay()
    relay._connect = lambda: sqlite3.connect(shop.jobs_file)
    with pytest.raises(StoreError, match="belongs to Fairlane"):
        relay.drain()
