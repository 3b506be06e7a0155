"""Adding to the outbox: in the application's transaction, with the same checks as an enqueue."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from uuid import UUID

import apsw
import pytest

from fairlane import InvalidJob, Outbox, PayloadTooLarge, State, TenantMismatch
from fairlane.model.instants import SECOND
from fairlane.outbox.table import ParamStyle
from tests.app.world import RuntimeClock
from tests.outbox.shop import Shop


def test_a_job_is_in_the_outbox_exactly_if_the_application_commits(any_shop: Shop) -> None:
    """With the application's own rows; the id is known before."""
    any_shop.execute("INSERT INTO orders VALUES ('lost')")
    any_shop.add(any_shop.task.bind("lost"))
    any_shop.rollback()
    any_shop.execute("INSERT INTO orders VALUES ('kept')")
    (id,) = any_shop.add(any_shop.task.bind("kept"))
    assert any_shop.rows() == []
    any_shop.commit()
    assert any_shop.rows() == [str(id)]
    assert any_shop.relay().drain() == 1
    assert (any_shop.rows(), any_shop.stored()) == ([], [id])


def test_a_job_comes_out_as_it_was_called(any_shop: Shop) -> None:
    """Every option and every argument, by way of JSON in a row."""
    call = any_shop.task.using(
        tenant="globex",
        priority=7,
        idempotency_key="key ü",
        dedup_key="d",
        correlation_id="order 7",
        max_attempts=3,
        timeout=90,
        tags=["a", "b"],
        metadata={"n": [1, None]},
    ).bind(["x", datetime(2026, 1, 1, tzinfo=UTC), b"\x00\xff", {"ключ": "☃"}])
    any_shop.add(call)
    any_shop.commit()
    any_shop.relay().drain()
    (moved,) = any_shop.app.jobs.find()
    (plain,) = any_shop.app.enqueue_many([call])
    assert (moved.id, plain.created) == (plain.id, False)  # the same key and the same fingerprint
    fields = "tenant queue task priority max_attempts correlation_id dedup_key tags metadata idempotency_key"
    assert [getattr(moved, one) for one in fields.split()] == [getattr(plain, one) for one in fields.split()]
    assert (moved.metadata["n"], moved.tags) == ([1, None], frozenset({"a", "b"}))


def test_a_row_is_readable_and_says_its_format(shop: Shop) -> None:
    """JSON with a version; nothing that runs when it is read."""
    (id,) = shop.add(shop.task.bind("x"))
    shop.commit()
    ((found, tenant, version, job, problem),) = shop.rows("id, tenant, format, job, problem")
    assert (found, tenant, version, problem) == (str(id), "acme", 1, None)
    assert json.loads(job)["task"] == "note"


def test_delays_count_from_the_adding_however_late_the_relay_comes(shop: Shop) -> None:
    """An hour after the adding is an hour after the adding; likewise for the expiry."""
    before = datetime.now(UTC)
    shop.add(shop.task.using(delay=3_600, expires_in=7_200).bind("x"))
    shop.commit()
    after = datetime.now(UTC)
    clock = RuntimeClock()
    shop.app.client.clock = clock
    clock.now += 1_800 * SECOND
    shop.relay().drain()
    (job,) = shop.app.jobs.find()
    assert job.expires_at is not None
    assert before <= job.run_at - timedelta(hours=1) <= after
    assert job.expires_at - job.run_at == timedelta(hours=1)
    assert job.state is State.DELAYED


def test_a_badly_formed_call_is_refused_at_once_and_nothing_is_executed(shop: Shop) -> None:
    """The same error as from an enqueue, with every problem."""
    with pytest.raises(InvalidJob) as caught:
        shop.add(shop.task.bind("x"), shop.task.using(tenant="a b", delay=-1).bind("y"))
    assert [(one.index, one.field) for one in caught.value.problems] == [(1, "tenant"), (1, "delay")]
    with pytest.raises(PayloadTooLarge):
        shop.add(*[shop.task.bind("x")] * 1_001)
    shop.commit()
    assert shop.rows() == []


def test_the_ambient_tenant_counts_and_keeps_others_out(shop: Shop) -> None:
    """As for an enqueue."""
    plain = shop.app.task(name="plain")(lambda: None)
    with shop.app.tenant("globex"):
        shop.add(plain.bind())
        with pytest.raises(TenantMismatch):
            shop.add(shop.task.bind("x"))
    shop.commit()
    assert shop.rows("tenant") == ["globex"]


def test_a_call_that_names_a_connection_does_not_belong_in_an_outbox(shop: Shop) -> None:
    """There would be two places to go to."""
    with pytest.raises(InvalidJob, match="this is the outbox"):
        shop.add(shop.task.bind(1), shop.task.using(connection=apsw.Connection("")).bind("x"))


def test_add_gives_the_id_of_its_job(shop: Shop) -> None:
    """One call, one id."""
    id = shop.outbox.add(shop.execute, shop.task.bind("x"))
    shop.commit()
    assert isinstance(id, UUID)
    assert shop.rows() == [str(id)]


@pytest.mark.parametrize("style", ["qmark", "named"])
def test_statements_can_be_executed_by_hand_in_the_librarys_own_style(shop: Shop, style: ParamStyle) -> None:
    """For libraries whose `execute` is awaited; the standard library takes both of these."""
    (one,) = Outbox(shop.app, paramstyle=style).statements([shop.task.bind("x")])
    shop.execute(one.sql, one.values)
    shop.commit()
    assert shop.rows() == [str(one.id)]


@pytest.mark.parametrize(
    ("style", "marks"),
    [
        ("numeric", "VALUES (:1, :2, :3, :4, :5)"),
        ("numeric_dollar", "VALUES ($1, $2, $3, $4, $5)"),
        ("format", "VALUES (%s, %s, %s, %s, %s)"),
        ("pyformat", "VALUES (%(id)s, %(tenant)s, %(format)s, %(job)s, %(created_at)s)"),
    ],
)
def test_statements_are_spelled_for_other_libraries_too(shop: Shop, style: ParamStyle, marks: str) -> None:
    """Values by name where the style has names, else in the order of the marks."""
    (one,) = Outbox(shop.app, paramstyle=style).statements([shop.task.bind("x")])
    assert one.sql.endswith(marks)
    values = list(one.values.values()) if isinstance(one.values, dict) else list(one.values)
    assert isinstance(one.values, dict) is (style == "pyformat")
    assert (values[0], values[1], values[2]) == (str(one.id), "acme", 1)


def test_the_table_can_be_made_twice_and_refuses_the_same_job_twice(shop: Shop) -> None:
    """Migrations may run again; a row added by mistake again is an error of the database."""
    shop.execute(Outbox.ddl("sqlite"))
    assert "IDENTITY" in Outbox.ddl("postgresql")
    (one,) = shop.outbox.statements([shop.task.bind("x")])
    shop.execute(one.sql, one.values)
    with pytest.raises(sqlite3.IntegrityError):
        shop.execute(one.sql, one.values)
