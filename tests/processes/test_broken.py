"""Handlers that would take their worker along: it serves the others, or it ends and says so."""

from __future__ import annotations

import pytest

from fairlane import State
from tests.processes.conftest import Site, wait_for


@pytest.mark.parametrize("task", ["sinks", "sinks_async"])
def test_a_recursion_without_end_is_settled_and_the_worker_serves_on(site: Site, task: str) -> None:
    """Python formats every frame of its traceback: with millions of them the loop stood still for minutes."""
    worker = site.start()
    deep = site.enqueue(task)
    wait_for(lambda: len(worker.starts()) == 1)
    other = site.enqueue("short", 0)
    wait_for(lambda: other.refresh().state is State.SUCCEEDED)
    wait_for(lambda: deep.refresh().state is State.DEAD)
    last = deep.refresh().attempts[-1]
    assert (last.error_type, last.error_class) == ("RecursionError", "retryable")
    assert "too deep to be shown whole" in str(last.traceback)


def test_a_worker_that_cannot_settle_any_more_ends_with_a_word_and_a_code(site: Site) -> None:
    """One line, and 70: whoever supervises it starts another, and the job runs again there."""
    worker = site.start()
    site.enqueue("breaks")
    assert worker.end() == 70
    told = [one for one in worker.events() if one["event"] == "worker_broken"]
    assert len(told) == 1
    assert "its own code raised LookupError: the worker is broken" in told[0]["message"]
