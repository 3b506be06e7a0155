"""What a query finds, field by field (S78)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.query.fields import ALIASES, FIELDS, STATES
from fairlane.model.query.matching import matcher
from tests.model.query.jobs import JOB_ID, NOW, PARENT_ID, failed_job, job

RUNNING: dict[str, Any] = {"state": State.RUNNING, "worker": "w7", "started_at": NOW - 10 * MINUTE}
DEAD: dict[str, Any] = {"state": State.DEAD, "because": "exhausted: no user", "settled_at": NOW - MINUTE}

CASES: list[tuple[str, JobRecord, bool]] = [
    ("", job(), True),
    ("  ", job(), True),
    ("tenant:acme", job(), True),
    ("tenant:acm", job(), False),
    ("tenant:Acme", job(), False),
    ("tenant:globex,acme", job(), True),
    ("tenant:globex", job(), False),
    ("-tenant:globex", job(), True),
    ("-tenant:acme", job(), False),
    ("queue:mail task:mail.*", job(), True),
    ("queue:mail task:sort.*", job(), False),
    ("task:mail.send", job(), True),
    ("task:mail", job(), False),
    ('task:"mail.*"', job(), False),
    ("type:mail.send", job(), True),
    ("queue:bulk or queue:mail", job(), True),
    ("queue:bulk OR queue:mail", job(), True),
    ("queue:bulk or tenant:globex", job(), False),
    ("tenant:acme queue:bulk or queue:mail", job(), True),
    ("tenant:acme (queue:bulk or queue:low)", job(), False),
    ("-(queue:bulk or queue:low)", job(), True),
    ("--tenant:acme", job(), True),
    ("tag:vip", job(), True),
    ("tag:region=eu", job(), True),
    ("tag:region=*", job(), True),
    ("tag:region", job(), False),
    ("-tag:vip", job(), False),
    ("tag:vip", job(tags=()), False),
    ("state:ready", job(), True),
    ("state:dead,running", job(), False),
    ("state:waiting", job(state=State.DELAYED), True),
    ("state:finished", failed_job(**DEAD), True),
    ("status:completed", job(state=State.SUCCEEDED), True),
    ("state:dead_letter", failed_job(**DEAD), True),
    ("because:exhausted", failed_job(**DEAD), True),
    ("because:failed", failed_job(**DEAD), False),
    ("because:time", job(), False),
    ("class:timeout", failed_job(), True),
    ("class:crash", failed_job(), False),
    ("class:timeout", job(), False),
    ("-class:timeout", job(), True),
    ("error:nouser", failed_job(), True),
    ('error:"user 4711"', failed_job(), True),
    ("error:4712", failed_job(), False),
    ("group:00112233aabbccdd", failed_job(), True),
    ("fingerprint:0011*", failed_job(), True),
    ("worker:w1", failed_job(), True),
    ("worker:w7", job(**RUNNING), True),
    ("worker:w*", job(), False),
    ("failures:1", failed_job(), True),
    ("failures:>=1", failed_job(), True),
    ("failures:>1", failed_job(), False),
    ("failures:<1", job(), True),
    ("failures:<=0", failed_job(), False),
    ("attempt:1..3", failed_job(), True),
    ("attempt:2..3", failed_job(), False),
    ("crashes:0", job(), True),
    ("prio:-5", job(priority=-5), True),
    ("priority:>0", job(priority=-5), False),
    ("by:ann@example.org", job(created_by="ann@example.org"), True),
    ("created_by:ann*", job(), False),
    ("corr:c-1", job(correlation_id="c-1"), True),
    ("key:k1", job(idempotency_key="k1"), True),
    ("dedup:d1", job(dedup_key="d1"), True),
    ("dedup:d1", job(), False),
    (f"parent:{PARENT_ID}", job(parent_id=PARENT_ID), True),
    ("parent:x*", job(), False),
    (f"id:{JOB_ID}", job(), True),
    (str(JOB_ID), job(), True),
    (str(JOB_ID).upper(), job(), True),
    ("b4e652", job(), True),
    ("4e652", job(), False),
    ("c-1", job(correlation_id="c-1"), True),
    ("mail.s", job(), True),
    ('"mail.s"', job(), True),
    ("sort", job(), False),
    ("enqueued:2h", job(), True),
    ("since:30m", job(), False),
    ("enqueued:>30m", job(), True),
    ("enqueued:>2h", job(), False),
    ("enqueued:<2h", job(), True),
    ("enqueued:today", job(), True),
    ("enqueued:yesterday", job(), False),
    ("enqueued:yesterday", job(ago=20 * HOUR), True),
    ("enqueued:13:00", job(), True),
    ("enqueued:13:00:00", job(), True),
    ("enqueued:13:01", job(), False),
    ("enqueued:12:59..13:00", job(), True),
    ("enqueued:13:01..14:05", job(), False),
    ("enqueued:2024-10-04", job(), True),
    ("enqueued:2024-10-03..2024-10-04", job(), True),
    ("enqueued:2024-10-05", job(), False),
    ("enqueued:<2024-10-04", job(), False),
    ("enqueued:<=2024-10-04", job(), True),
    ("enqueued:>=2024-10-04", job(), True),
    ("enqueued:>2024-10-04", job(), False),
    ("enqueued:>2024-10-04T12:59:59", job(), True),
    ('enqueued:"2024-10-04"', job(), True),
    ("enqueued:>2024-10-04T14:59:58+02:00", job(), True),
    ("enqueued:>1970-01-01", job(), True),
    ("settled:1h", failed_job(**DEAD), True),
    ("settled:1h", job(), False),
    ("expires:>1h", job(), False),
    ("due:today", job(), True),
    ("wait:>59m", job(), True),
    ("wait:>61m", job(), False),
    ("wait:1h", job(), True),
    ("wait:>1s", job(**RUNNING), False),
    ("run:>5m", job(**RUNNING), True),
    ("run:1s..3s", failed_job(), True),
    ("run:>1ms", job(), False),
    ("arg.to:ann@example.org", job(), True),
    ("arg.to:ann*", job(), True),
    ("arg.n:5", job(), True),
    ('arg.n:"5"', job(), False),
    ("arg.n:>4", job(), True),
    ("arg.n:6..9", job(), False),
    ("arg.price:1.5", job(), True),
    ("arg.lines.0.sku:a", job(), True),
    ("arg.lines.1.sku:a", job(), False),
    ("arg.lines.x:a", job(), False),
    ("arg.lines:a", job(), False),
    ("arg.note:null", job(), True),
    ("arg.is_new:true", job(), True),
    ("arg.is_new:false", job(), False),
    ('arg.is_new:"true"', job(), False),
    ("arg.is_new:>1", job(), False),
    ("arg.gone:null", job(), False),
    ("-arg.gone:x", job(), True),
    ("arg.to:ann*", job(payload=b""), False),
    ("arg.to:>4", job(), False),
    ("meta.step:3", job(), True),
    ("meta.step:4", job(), False),
]


@pytest.mark.parametrize(("query", "record", "is_found"), CASES, ids=lambda one: str(one)[:40])
def test_a_query_finds_what_it_says(query: str, record: JobRecord, is_found: bool) -> None:
    """S78: every field, every kind of value, and what is not there."""
    assert matcher(query, NOW)(record) is is_found


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_reads_every_job(name: str) -> None:
    """A field of a job that has nothing there is None and raises nothing."""
    for record in (job(), failed_job(**DEAD), job(**RUNNING)):
        found = FIELDS[name].read(record, NOW)
        assert found is None or isinstance(found, str | int | tuple)
        assert FIELDS[name].meaning


def test_aliases_name_fields_and_states_have_words() -> None:
    """No alias leads nowhere, and every state is a word of its own."""
    assert set(ALIASES.values()) <= set(FIELDS)
    assert not set(ALIASES) & set(FIELDS)
    assert {state for found in STATES.values() for state in found} == set(State)
    assert SECOND < MINUTE
