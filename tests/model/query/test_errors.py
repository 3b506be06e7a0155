"""A query that cannot be understood is refused, and the error points at the place (S78)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.query.matching import matcher
from fairlane.model.query.narrowing import narrow
from fairlane.model.query.parser import MAX_CHARS, MAX_DEPTH, MAX_TERMS
from fairlane.model.query.syntax import QueryError
from tests.model.query.jobs import NOW, failed_job, job

REFUSED = [
    ("tenent:acme", 0, "did you mean tenant"),
    ("zzz:1", 0, "there are id, tenant"),
    ("arg.:1", 0, "no field"),
    ("state:deadd", 6, "no state"),
    ("state:ready,deadd", 12, "no state"),
    ("state:", 6, "missing behind state:"),
    ("state:ready,", 12, "missing behind state:"),
    ("(state:ready", 0, "not closed"),
    ("state:ready)", 11, "nothing is open"),
    ("or queue:a", 0, "missing beside this 'or'"),
    ("queue:a or", 8, "missing beside this 'or'"),
    ("-", 0, "missing behind this '-'"),
    ("(-)", 1, "missing behind this '-'"),
    ('task:"mail', 5, "quote is not closed"),
    ("task:m*il", 6, "at the end"),
    ("mail*", 0, "needs a field"),
    (",a", 0, "a term is missing"),
    ("failures:many", 9, "is not a number"),
    ("failures:1..x", 9, "is not a number"),
    ("wait:5", 5, "is not a duration"),
    ("wait:>5 m", 5, "is not a duration"),
    ('enqueued:>="today"', 9, "is not a time"),
    ("enqueued:soon", 9, "is not a time"),
    ("enqueued:25:00", 9, "is not a time"),
    ("enqueued:2024-13-01", 9, "is not a time"),
    ("arg.n:>x", 6, "is not a number"),
    ("arg.n:1..x", 6, "is not a number"),
    ("a " * (MAX_TERMS + 1), 2 * MAX_TERMS, "at most 100 terms"),
    ("(" * (MAX_DEPTH + 2) + "a" + ")" * (MAX_DEPTH + 2), MAX_DEPTH + 1, "nests at most 20"),
    ("a" * (MAX_CHARS + 1), 0, "at most 2000 characters"),
]


@pytest.mark.parametrize(("query", "position", "problem"), REFUSED, ids=lambda one: str(one)[:30])
def test_the_error_points_at_the_place(query: str, position: int, problem: str) -> None:
    """The message has the query, and a mark below the character where it stops making sense."""
    with pytest.raises(QueryError, match=r"(?s).*") as raised:
        matcher(query, NOW)
    assert problem in str(raised.value)
    assert raised.value.position == position
    lines = str(raised.value).split("\n")
    assert lines[-1] == f"  {' ' * position}^"


@given(st.text(alphabet='abc:>=<.,*()"\\- or1', max_size=60) | st.text(max_size=60))
def test_no_text_does_anything_but_match_or_be_refused(text: str) -> None:
    """Whatever is typed: an answer for every job, or one error with a place inside the text."""
    try:
        matches = matcher(text, NOW)
    except QueryError as error:
        is_inside = 0 <= error.position <= len(text)
        if not is_inside:
            raise
        return
    for record in (job(), failed_job()):
        if matches(record):
            found = narrow(text)
            assert found.tenant in {None, record.tenant}
            assert found.queue in {None, record.queue}
            assert found.task in {None, record.task}
            assert not found.states or record.state in found.states


def test_narrowing_never_loses_a_job(request: pytest.FixtureRequest) -> None:
    """Random queries of real fields: what matches has all that the store is asked for."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    terms = ["tenant:acme", "tenant:globex", "queue:mail", "queue:bulk", "task:mail.*", "task:mail.send"]
    terms += ["state:ready", "state:dead,ready", "tag:vip", "tag:x", "by:ann", "corr:c-1", "wait:>1m"]
    records = [job(), failed_job(), job(created_by="ann", correlation_id="c-1")]
    records.append(job(queue="bulk", tags=("x",)))
    found_some = 0
    for _ in range(2_000):
        query = " ".join(
            draw.choice(["", "", "-"]) + draw.choice(terms) + draw.choice(["", "", " or"])
            for _ in range(draw.randint(1, 4))
        ).removesuffix(" or")
        found, matches = narrow(query), matcher(query, NOW)
        for record in records:
            has_all = all(
                (
                    found.tenant in {None, record.tenant},
                    found.queue in {None, record.queue},
                    found.task in {None, record.task},
                    found.created_by in {None, record.created_by},
                    found.correlation_id in {None, record.correlation_id},
                    found.tag is None or found.tag in record.tags,
                    not found.states or record.state in found.states,
                )
            )
            assert has_all or not matches(record), query
            assert not found.is_complete or has_all == matches(record), query
            found_some += matches(record)
    assert found_some
