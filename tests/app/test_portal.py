"""Blocking callers: without a loop, from threads, inside a running loop, after a fork, at exit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from fairlane import Fairlane, StoreUnavailable, Task
from fairlane.app.open_stores import OpenStores
from fairlane.app.portal import Portal
from tests.app.world import World, note


def portals() -> list[threading.Thread]:
    """List the portal threads of this process."""
    return [thread for thread in threading.enumerate() if thread.name == "fairlane-portal"]


# ── begin and end ────────────────────────────────────────────────────────────


def test_nothing_is_started_or_opened_before_the_first_call(world: World, task: Task[..., None]) -> None:
    """Neither by making an application nor by declaring and binding tasks."""
    task.using(delay=5).bind("x")
    assert portals() == []
    assert world.opened == 0
    task.enqueue("x")
    assert len(portals()) == 1
    assert world.opened == 1


def test_all_calls_share_one_thread_and_one_store(world: World, app: Fairlane, task: Task[..., None]) -> None:
    """Whatever is asked."""
    for n in range(5):
        app.jobs.get(task.enqueue(n).id).refresh()
    assert len(portals()) == 1
    assert world.opened == 1


def test_closing_leaves_no_thread_and_closes_the_store(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """Twice is fine, and never having been open too."""
    app.close()
    task.enqueue("x")
    app.close()
    app.close()
    assert portals() == []
    assert world.verbs() == ["enqueue", "aclose"]


def test_an_application_can_be_used_again_after_closing(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """It opens anew."""
    with app:
        task.enqueue("x")
    assert portals() == []
    with app as same:
        assert same is app
        task.enqueue("y")
    assert (world.opened, len(world.stored())) == (2, 2)


async def test_the_async_end_closes_what_the_loop_opened(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """And needs no thread."""
    async with app:
        await task.aenqueue("x")
    assert world.verbs() == ["enqueue", "aclose"]
    assert portals() == []


async def test_the_async_end_closes_what_plain_calls_opened_too(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """Both stores, and the thread."""
    async with app:
        await task.aenqueue("x")
        await asyncio.to_thread(task.enqueue, "y")
        assert len(portals()) == 1
    assert world.opened == 2
    assert sorted(world.verbs()) == ["aclose", "aclose", "enqueue", "enqueue"]
    assert portals() == []


def test_each_loop_has_a_store_of_its_own(world: World, task: Task[..., None]) -> None:
    """Connections belong to the loop they were made in; a loop that is gone takes its own along."""
    asyncio.run(_enqueue(task))
    asyncio.run(_enqueue(task))
    assert world.opened == 2
    stores: Any = task._tasks.client._stores._by_loop
    assert len(stores) == 0


def test_a_loop_that_ends_closes_the_store_that_was_left_open_in_it(
    world: World, task: Task[..., None]
) -> None:
    """Or one `asyncio.run` after the other would leave threads and open files behind."""
    asyncio.run(_enqueue(task))
    assert world.verbs() == ["enqueue", "enqueue", "aclose"]


async def _enqueue(task: Task[..., None]) -> None:
    await task.aenqueue("x")
    await task.aenqueue("y")


def test_an_application_that_is_never_closed_does_not_keep_the_interpreter() -> None:
    """Its thread is a daemon."""
    code = (
        "from fairlane.app.portal import Portal\n"
        "async def answer(): return 42\n"
        "print(Portal().run(answer()))\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, timeout=120, check=True)  # noqa: S603 (our own text)
    assert (run.stdout.strip(), run.stderr) == (b"42", b"")


def test_a_call_while_the_interpreter_goes_down_is_refused_and_does_not_wait_for_ever() -> None:
    """The portal's thread does not run any more when the last objects are deleted."""
    code = (
        "from fairlane import StoreUnavailable\nfrom fairlane.app.portal import Portal\n"
        "async def answer(): return 42\n"
        "class Late:\n"
        "    portal, answer, error = Portal(), staticmethod(answer), StoreUnavailable\n"
        "    def __del__(self):\n"
        "        try: self.portal.run(self.answer())\n"
        "        except self.error as error: print(error)\n"
        "late = Late()\nlate.portal.run(answer())\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, timeout=120, check=True)  # noqa: S603 (our own text)
    assert (b"shutting down" in run.stdout, run.stderr) == (True, b"")


# ── threads ──────────────────────────────────────────────────────────────────


def test_many_threads_enqueue_at_once(world: World, task: Task[..., None]) -> None:
    """One portal serves them all; every job is stored once, under an id of its own."""
    everyone_is_here = threading.Barrier(8)

    def work(thread: int) -> list[object]:
        everyone_is_here.wait()
        return [task.enqueue(f"{thread}-{n}").id for n in range(25)]

    with ThreadPoolExecutor(8) as pool:
        ids = [id for found in pool.map(work, range(8)) for id in found]
    assert len(set(ids)) == len(world.stored()) == 200
    assert len(portals()) == 1
    assert world.opened == 1


async def test_ids_do_not_meet_when_loops_and_threads_enqueue_together(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """Each thread makes its own."""
    world.drive(app)  # time stands still: only the makers keep ids apart
    plain = [asyncio.to_thread(task.enqueue, n) for n in range(20)]
    jobs = await asyncio.gather(*plain, *(task.aenqueue(n) for n in range(20)))
    assert len({job.id for job in jobs}) == 40
    await app.aclose()


def test_the_callers_tenant_goes_along(app: Fairlane, task: Task[..., None]) -> None:
    """The portal's thread is not where the caller stands."""
    plain = app.task(name="plain")(note)
    task.enqueue("start the thread outside of any tenant")
    with app.tenant("globex"):
        assert plain.enqueue("x").tenant == "globex"
    assert plain.enqueue("x").tenant == "system"


def test_an_error_reaches_the_caller_as_it_was_raised(world: World, task: Task[..., None]) -> None:
    """Not wrapped, not lost."""
    error = StoreUnavailable("away")
    world.fail_before = [error]
    with pytest.raises(StoreUnavailable) as caught:
        task.enqueue("x")
    assert caught.value is error


# ── inside a loop ────────────────────────────────────────────────────────────


async def test_a_plain_call_inside_a_loop_works_and_warns_once(app: Fairlane, task: Task[..., None]) -> None:
    """It blocks the loop, which the warning says, with the twin's name and the caller's line."""
    with pytest.warns(RuntimeWarning, match=r"enqueue\(\) blocks.*await aenqueue\(\)") as caught:
        job = task.enqueue("x")
    assert caught[0].filename == __file__
    assert app.jobs.get(job.id).id == job.id  # no second warning: it would be an error here
    app.close()


def test_no_warning_without_a_loop(app: Fairlane, task: Task[..., None]) -> None:
    """Plain code is at home here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task.enqueue("x")
        app.close()


# ── the portal itself ────────────────────────────────────────────────────────


async def forever(started: threading.Event, cancelled: threading.Event) -> None:
    """Run until cancelled."""
    started.set()
    try:
        await asyncio.Event().wait()
    finally:
        cancelled.set()


def test_closing_cancels_what_still_runs() -> None:
    """Nobody waits for ever for a portal that is gone."""
    portal, started, cancelled = Portal(), threading.Event(), threading.Event()
    future = portal.submit(forever(started, cancelled))
    assert started.wait(10)
    portal.close()
    assert cancelled.is_set()
    assert future.cancelled()
    assert not portal.is_open


def test_an_interrupted_wait_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in plain code must not leave the call running behind it."""
    portal, started, cancelled = Portal(), threading.Event(), threading.Event()

    def interrupted(future: Future[Any], timeout: float | None = None) -> None:
        assert started.wait(10)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            portal.run(forever(started, cancelled))
    assert cancelled.wait(10)
    portal.close()


def test_a_forked_child_gets_a_fresh_portal_and_leaves_the_parents_alone() -> None:
    """Threads do not survive a fork: without a new one the child would wait for ever."""
    portal = Portal()

    async def where() -> int:
        return os.getpid()

    assert portal.run(where()) == os.getpid()
    verdict = in_a_child(lambda: portal_works_in_the_child(portal, where))
    assert verdict == 0
    assert portal.run(where()) == os.getpid()
    portal.close()


def portal_works_in_the_child(portal: Portal, where: Callable[[], Any]) -> bool:
    """Check from inside a forked child."""
    return not portal.is_open and portal.run(where()) == os.getpid() and len(portals()) == 1


def test_a_fork_while_another_thread_is_inside_does_not_stop_the_child() -> None:
    """The parent's other threads are gone in the child, and with them whoever would have let it in."""
    portal = Portal()

    async def answer() -> int:
        return 42

    is_inside, has_forked = threading.Event(), threading.Event()

    def stay_inside() -> None:
        with portal._entry:
            is_inside.set()
            has_forked.wait()

    other = threading.Thread(target=stay_inside)
    other.start()
    assert is_inside.wait(10)
    verdict = in_a_child(lambda: portal.run(answer()) == 42)
    has_forked.set()
    other.join()
    assert verdict == 0


async def test_a_forked_child_does_not_use_the_parents_store(world: World) -> None:
    """Two processes on one connection would read each other's answers."""
    stores = OpenStores(lambda: world._open("oracle://here", None))
    first = stores.here()
    assert stores.here() is first
    loop = asyncio.get_running_loop()
    inherited = stores._by_loop[loop]._replace(pid=-1)  # as a child would find it
    stores._by_loop[loop] = inherited
    assert stores.here() is not first
    stores._by_loop[loop] = inherited
    await stores.aclose()
    assert world.verbs() == []


def in_a_child(check: Callable[[], bool]) -> int:
    """Fork, check in the child, and return its exit code; a negative one means that it hung."""
    with warnings.catch_warnings():
        # Newer Pythons warn of forks with threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            signal.alarm(20)
            code = 0 if check() else 2
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
