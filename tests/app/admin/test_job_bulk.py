"""`app.jobs.cancel_all` and its like: all jobs that match, counted first, in passes, audited once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fairlane import BulkResult, Fairlane, State, Task
from fairlane.app.admin import job_bulk
from fairlane.store.contract.jobs import StopRequest
from tests.app.world import World


@pytest.fixture
def many(task: Task[..., None], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Seven jobs of acme, three of them delayed, and one of globex; passes of two."""
    monkeypatch.setattr(job_bulk, "STEP", 2)
    waiting = [task.enqueue(n) for n in range(4)]
    delayed = [task.using(delay=timedelta(hours=1)).enqueue(n) for n in range(3)]
    return [*waiting, *delayed, task.using(tenant="globex").enqueue(9)]


def states(app: Fairlane) -> list[State]:
    """Return the states of all jobs, the oldest first."""
    return [job.state for job in reversed(app.jobs.find().items)]


def test_a_bulk_cancel_changes_what_matches_and_nothing_else(app: Fairlane, many: list[Any]) -> None:
    """In passes; a job of another tenant stays."""
    seen: list[BulkResult] = []
    result = app.jobs.cancel_all("tenant:acme", reason="wrong file", on_progress=seen.append)
    assert (result.matches, result.done, result.refused, result.left) == (7, 7, {}, 0)
    assert states(app) == [State.CANCELLED] * 7 + [State.READY]
    assert [one.done for one in seen] == [2, 4, 6, 7]
    assert app.jobs.get(many[0].id).because == "asked: wrong file"


def test_a_bulk_action_is_counted_first(app: Fairlane, many: list[Any]) -> None:
    """A dry run changes nothing and leaves nothing in the audit."""
    result = app.jobs.cancel_all(tenant="acme", dry_run=True)
    assert (result.matches, result.done, result.left) == (7, 0, 7)
    assert State.CANCELLED not in states(app)


def test_what_it_cannot_change_does_not_match(app: Fairlane, many: list[Any]) -> None:
    """Run now is for delayed jobs, condemn for waiting ones; finished ones are left out of the count."""
    assert app.jobs.run_now_all("tenant:acme").done == 3
    assert app.jobs.cancel_all(tenant="globex").done == 1
    result = app.jobs.condemn_all(reason="a test")
    assert (result.matches, result.done) == (7, 7)
    assert app.jobs.cancel_all("state:dead").matches == 0
    assert app.jobs.cancel_all(state=State.DEAD) == BulkResult(
        matches=0, done=0, refused={}, examples=(), left=0
    )


def test_a_limit_leaves_the_oldest(app: Fairlane, many: list[Any]) -> None:
    """The newest go first; asked again, it goes on."""
    first = app.jobs.cancel_all(tenant="acme", limit=3)
    assert (first.matches, first.done, first.left, first.is_complete) == (7, 3, 4, False)
    assert states(app)[:4] == [State.READY] * 4
    assert app.jobs.cancel_all(tenant="acme").done == 4


def test_jobs_that_are_enqueued_meanwhile_are_left_alone(
    app: Fairlane, world: World, many: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passes go from the newest to the oldest."""
    real = world.oracle.jobs.cancel

    async def cancel_and_enqueue(request: StopRequest) -> Any:
        await app.aenqueue_by_name("note", {"text": "later"}, tenant="acme")
        return await real(request)

    monkeypatch.setattr(world.oracle.jobs, "cancel", cancel_and_enqueue)
    assert app.jobs.cancel_all(tenant="acme").done == 7
    assert states(app).count(State.READY) == 1 + 4


def test_a_bulk_action_leaves_two_entries(app: Fairlane, world: World, many: list[Any]) -> None:
    """One at its start with the filter and the count, one at its end with the result, and none per job."""
    with app.acting_as("ann"):
        app.jobs.cancel_all("arg.text:>=1", tenant="acme", reason="wrong file")
    appended = [one for one in world.asked if one[0] == "append"]
    first, last = (one[1].entries[0] for one in appended)
    assert first.kind == last.kind == "jobs.cancel_all"
    assert b'"tenant":"acme"' in first.body
    assert b'"note":"wrong file"' in first.body
    assert b'"done":5' in last.body
    cancels = [one[1] for one in world.asked if one[0] == "cancel"]
    assert {request.operation for request in cancels} == {None}


@pytest.mark.parametrize("bad", [{"limit": 0}, {"state": "lost"}, {"queue": "No"}])
def test_a_bad_value_changes_nothing(app: Fairlane, many: list[Any], bad: dict[str, Any]) -> None:
    """Everything is checked before a store is asked to change anything."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        app.jobs.cancel_all(**bad)
    with pytest.raises(ValueError, match="reason"):
        app.jobs.condemn_all(reason=" ")
    assert State.CANCELLED not in states(app)
