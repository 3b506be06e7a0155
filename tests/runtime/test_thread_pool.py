"""Threads for plain handlers: as many as run at once, reused, and replaced when one is abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from fairlane.runtime.thread_pool import ThreadCall, ThreadPool

NAME = "fairlane-test"


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    """Threads that end with the test."""
    made = ThreadPool(NAME)
    yield made
    made.close()
    wait(lambda: alive() == 0)


def alive() -> int:
    """Count the threads that live."""
    return sum(thread.name.startswith(NAME) for thread in threading.enumerate())


def wait(is_so: Callable[[], bool]) -> None:
    """Wait for a fact."""
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def all_done(tickets: list[ThreadCall]) -> bool:
    """Whether all functions have ended."""
    return all(ticket.is_done for ticket in tickets)


def meet(barrier: threading.Barrier) -> None:
    """Wait for all others."""
    barrier.wait()


def hang(release: threading.Event) -> None:
    """Be stuck until released."""
    release.wait(20)


def test_there_are_as_many_threads_as_functions_run_at_once(threads: ThreadPool) -> None:
    """No more are started when some are free, and none is missing when all must run."""
    for _ in range(3):
        barrier = threading.Barrier(4, timeout=20)
        tickets = [threads.submit(partial(meet, barrier)) for _ in range(4)]
        wait(partial(all_done, tickets))
        for ticket in tickets:
            threads.ended(ticket)
    assert alive() == 4


def test_an_abandoned_thread_is_replaced_and_ends_with_its_function(threads: ThreadPool) -> None:
    """It is counted on no more; should it ever end, it takes no other work."""
    release, ran = threading.Event(), threading.Event()
    stuck = threads.submit(partial(hang, release))
    threads.abandon(stuck)
    threads.ended(stuck)
    threads.submit(ran.set)
    assert ran.wait(20)
    assert alive() == 2
    release.set()
    wait(lambda: alive() == 1)


def test_a_thread_that_ended_just_before_it_was_abandoned_is_kept(threads: ThreadPool) -> None:
    """The count stays right, whoever comes first."""
    quick = threads.submit(lambda: None)
    wait(lambda: quick.is_done)
    threads.abandon(quick)
    done = threads.submit(lambda: None)
    wait(lambda: done.is_done)
    assert alive() == 1
