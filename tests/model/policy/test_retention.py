"""Finished jobs are stored for the most specific time that was given (S52)."""

from __future__ import annotations

import pytest

from fairlane.model.instants import DAY
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention

CUSTOM = Retention(
    succeeded=1, cancelled=2, dead=3, queues={"bulk": 10, "none": 0}, tenants={"acme": 100, "nobody": 0}
)


@pytest.mark.parametrize(
    ("state", "queue", "tenant", "kept"),
    [
        (State.SUCCEEDED, "mail", "globex", 1),
        (State.CANCELLED, "mail", "globex", 2),
        (State.DEAD, "mail", "globex", 3),
        (State.SUCCEEDED, "bulk", "globex", 10),
        (State.DEAD, "bulk", "globex", 10),
        (State.SUCCEEDED, "mail", "acme", 100),
        (State.DEAD, "bulk", "acme", 100),
        (State.SUCCEEDED, "none", "globex", 0),
        (State.SUCCEEDED, "bulk", "nobody", 0),
    ],
)
def test_tenant_beats_queue_and_queue_beats_state(state: State, queue: str, tenant: str, kept: int) -> None:
    """A time of zero is a time too."""
    assert CUSTOM.keep(state, queue, tenant) == kept


@pytest.mark.parametrize(("state", "days"), [(State.SUCCEEDED, 7), (State.CANCELLED, 7), (State.DEAD, 30)])
def test_the_defaults_are_a_week_and_a_month_for_the_dead(state: State, days: int) -> None:
    """Results and keys last a week as well."""
    assert Retention().keep(state, "q", "acme") == days * DAY
    assert (Retention().results, Retention().keys) == (7 * DAY, 7 * DAY)


@pytest.mark.parametrize("state", [State.DELAYED, State.READY, State.RUNNING])
def test_a_job_that_is_not_finished_has_no_time_to_be_kept(state: State) -> None:
    """Live jobs are never pruned, and asking is a mistake of the caller."""
    with pytest.raises(KeyError):
        CUSTOM.keep(state, "bulk", "acme")
