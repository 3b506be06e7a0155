"""Whatever a caller passes, building a job returns a job or one error that names every problem."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Call, Fairlane, InvalidJob
from fairlane.app.enqueue.job_builder import BuildContext, BuiltJob, build_jobs
from fairlane.model.names import label_hint, name_hint, tenant_hint
from fairlane.model.payload.encoding import decode_arguments
from tests.app.world import note

APP = Fairlane(payload={"sensitive": "allow"})
TASK = APP.task(name="note")(note)
FIELDS = [
    "tenant",
    "queue",
    "priority",
    "run_at",
    "delay",
    "expires_at",
    "expires_in",
    "idempotency_key",
    "on_duplicate",
    "dedup_key",
    "correlation_id",
    "created_by",
    "parent",
    "max_attempts",
    "timeout",
    "tags",
    "metadata",
]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None), max_size=300),
    st.binary(max_size=10),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
    st.uuids(),
    st.decimals(),
    st.builds(object),
    st.sampled_from(["acme", "default", "return", "raise", 5, 0.5, Decimal(1), timedelta(seconds=5)]),
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)


def answer(calls: list[Call[Any]]) -> list[BuiltJob] | InvalidJob:
    """Fill in a form outside of any tenant; anything but a refusal of form escapes."""
    try:
        return build_jobs(
            calls, BuildContext(APP.settings, APP.registry, None, lambda count: [UUID(int=1)] * count)
        )
    except InvalidJob as error:
        return error


@given(st.dictionaries(st.sampled_from(FIELDS), JUNK, max_size=4), JUNK)
def test_a_form_answers_whatever_it_is_given(options: dict[str, Any], argument: Any) -> None:
    """No other error escapes, every problem names its item, and what passes is well formed."""
    call = TASK.using(**options).bind(argument)
    reply = answer([call])
    if isinstance(reply, InvalidJob):
        assert reply.problems
        assert all(one.index == 0 and one.field and one.hint and one.code for one in reply.problems)
        return
    job = reply[0].job
    assert tenant_hint(job.tenant) is None
    assert name_hint(job.queue) is None
    keys = (job.idempotency_key, job.dedup_key, job.correlation_id, *job.tags)
    assert [key for key in keys if key is not None and label_hint(key) is not None] == []
    assert -100 <= job.priority <= 100
    assert 1 <= job.max_attempts <= 1000
    assert job.timeout is None or 1_000_000 <= job.timeout <= 86_400_000_000
    assert (job.run_at is None) or job.delay == 0
    assert (job.expires_at is None) or job.expires_in is None
    assert job.delay >= 0
    assert isinstance(msgspec.json.decode(job.metadata), dict)
    assert list(decode_arguments(job.payload)) == ["text", "other"]


@given(st.lists(st.booleans(), max_size=8))
def test_problems_are_those_of_the_bad_items_and_of_no_others(good: list[bool]) -> None:
    """S12: by index, in order."""
    bad = TASK.using(run_at=datetime(2030, 1, 1))  # noqa: DTZ001 (that is what is bad)
    calls = [(TASK if fine else bad).bind("x") for fine in good]
    reply = answer(calls)
    wrong = [one.index for one in reply.problems] if isinstance(reply, InvalidJob) else []
    assert wrong == [at for at, fine in enumerate(good) if not fine]
    assert isinstance(reply, InvalidJob) or len(reply) == len(good)
