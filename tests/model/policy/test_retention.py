"""Finished jobs are stored for the most specific time that was given (S52, S103)."""

from __future__ import annotations

import pytest

from fairlane.model.instants import DAY
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import CountCuts, Retention
from fairlane.model.review import ReviewRecord
from tests.model.retry.test_decision import job

CUSTOM = Retention(
    succeeded=1,
    cancelled=2,
    dead=3,
    queues={"bulk": 10, "none": 0},
    tenants={"acme": 100, "nobody": 0},
    tasks={"report": 1000, "ping": 0},
)
LIMITED = Retention(succeeded=50, cancelled=50, dead=50, tasks={"report": 1000})


@pytest.mark.parametrize(
    ("state", "queue", "tenant", "task", "kept"),
    [
        (State.SUCCEEDED, "mail", "globex", "send", 1),
        (State.CANCELLED, "mail", "globex", "send", 2),
        (State.DEAD, "mail", "globex", "send", 3),
        (State.SUCCEEDED, "bulk", "globex", "send", 10),
        (State.DEAD, "bulk", "globex", "send", 10),
        (State.SUCCEEDED, "mail", "acme", "send", 100),
        (State.DEAD, "bulk", "acme", "send", 100),
        (State.SUCCEEDED, "none", "globex", "send", 0),
        (State.SUCCEEDED, "bulk", "nobody", "send", 0),
        (State.DEAD, "mail", "globex", "report", 1000),
        (State.SUCCEEDED, "bulk", "nobody", "report", 1000),
        (State.CANCELLED, "bulk", "acme", "ping", 0),
    ],
)
def test_task_beats_tenant_beats_queue_beats_state(
    state: State, queue: str, tenant: str, task: str, kept: int
) -> None:
    """A time of zero is a time too."""
    assert CUSTOM.keep(state, queue, tenant, task) == kept


@pytest.mark.parametrize(
    ("state", "task", "settled_at", "is_over"),
    [
        (State.SUCCEEDED, "send", 69, True),
        (State.SUCCEEDED, "send", 70, False),
        (State.CANCELLED, "send", 69, True),
        (State.DEAD, "send", 79, True),
        (State.DEAD, "send", 80, False),
        (State.SUCCEEDED, "report", 10, False),
        (State.DEAD, "report", 10, False),
        (State.SUCCEEDED, "send", 50, True),
    ],
)
def test_a_job_is_over_by_number_too(state: State, task: str, settled_at: int, is_over: bool) -> None:
    """Of those without a time of their own: whatever ended before the last that is kept."""
    one = job(state=state, settled_at=settled_at, task=task)
    assert LIMITED.is_over(one, ReviewRecord(), 100, CountCuts(70, 80)) is is_over


def test_ages_are_those_at_which_something_may_go() -> None:
    """Each once, shortest first; the longest is not that of a result."""
    keep = Retention(succeeded=5, cancelled=5, results=9, queues={"q": 3}, tasks={"t": 7})
    assert (keep.ages, keep.longest, keep.has_own) == ((3, 5, 7, 9), 7, True)
    assert not Retention().has_own


@pytest.mark.parametrize(("state", "days"), [(State.SUCCEEDED, 7), (State.CANCELLED, 7), (State.DEAD, 30)])
def test_the_defaults_are_a_week_and_a_month_for_the_dead(state: State, days: int) -> None:
    """Results and keys last a week as well."""
    assert Retention().keep(state, "q", "acme", "t") == days * DAY
    assert (Retention().results, Retention().keys) == (7 * DAY, 7 * DAY)


@pytest.mark.parametrize("state", [State.DELAYED, State.READY, State.RUNNING])
def test_a_job_that_is_not_finished_has_no_time_to_be_kept(state: State) -> None:
    """Live jobs are never pruned, and asking is a mistake of the caller."""
    with pytest.raises(KeyError):
        CUSTOM.keep(state, "bulk", "acme", "t")
