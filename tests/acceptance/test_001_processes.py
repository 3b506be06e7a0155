"""Description B with real worker processes: signals, kills, several producers and workers."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from time import monotonic

from fairlane import Fairlane, State
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest
from tests.acceptance.crew import Crew, task_of
from tests.acceptance.service import application
from tests.acceptance.working import until
from tests.acceptance.world import ALL
from tests.families import parent_of


async def stop_in_the_middle(crew: Crew, number: signal.Signals) -> None:
    """Stop a worker while four jobs run and four wait: the four end, the others stay, the exit is good."""
    jobs = await crew.enqueue("hold", *range(8))
    worker = crew.start()
    await until(lambda: crew.count("began") == 4)
    worker.send_signal(number)
    crew.go()
    assert await crew.ended(worker) == 0
    states = [(await job.arefresh()).state for job in jobs]
    assert sorted(states) == [State.READY] * 4 + [State.SUCCEEDED] * 4
    assert crew.count("ended") == 4


async def test_001_cp2_3_sigterm_in_the_middle_of_a_job_lets_it_finish(crew: Crew) -> None:
    """The others stay waiting, and the process ends with 0."""
    await stop_in_the_middle(crew, signal.SIGTERM)


async def test_001_wk_6_sigint_is_as_graceful(crew: Crew) -> None:
    """One is; a second one is not."""
    await stop_in_the_middle(crew, signal.SIGINT)


async def test_001_wk_6_a_second_sigint_ends_the_worker_at_once(crew: Crew) -> None:
    """The job fails as retryable and is not lost."""
    (job,) = await crew.enqueue("hold", 1)
    worker = crew.start()
    await until(lambda: crew.count("began") == 1)
    worker.send_signal(signal.SIGINT)
    await until(lambda: is_draining(crew))
    told_at = monotonic()
    worker.send_signal(signal.SIGINT)
    assert await crew.ended(worker) == 0
    assert monotonic() - told_at < 10  # its deadline would be 20 seconds
    back = await job.arefresh()
    assert not back.is_finished
    assert [one.outcome for one in back.attempts] == ["failed"]


async def is_draining(crew: Crew) -> bool:
    """Whether the worker has heard that it is to stop."""
    views = await crew.app.client.store.registry.workers(WorkersRequest(scope=ALL))
    return [view.state for view in views] == ["draining"]


async def seconds_of_a_process() -> float:
    """Say how long a process takes here that does nothing: a busy machine is no fault of a worker."""
    began_at = monotonic()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import asyncio")
    assert await process.wait() == 0
    return monotonic() - began_at


async def test_001_wk_9_an_idle_worker_reacts_to_sigterm_within_a_second(crew: Crew) -> None:
    """It has run one job and waits for the next; to the second comes what any process takes here.

    A machine that is held up just then says nothing: of some tries, one is enough.
    """
    took = list[float]()
    while not took or (took[-1] > 1 and len(took) < 5):
        (job,) = await crew.enqueue("note", 1)
        worker = crew.start()
        await job.aresult(60)
        slowness = await seconds_of_a_process()
        told_at = monotonic()
        worker.terminate()
        assert await crew.ended(worker) == 0
        took.append(monotonic() - told_at - slowness)
    assert took[-1] < 1, took


async def test_001_cp2_4_a_killed_worker_is_recognised_as_lost(crew: Crew) -> None:
    """Its heartbeats stop, its lease runs out, and its job is recorded as lost by it."""
    await crew.lead()
    (job,) = await crew.enqueue("hold", 1)
    doomed = crew.start()
    await until(lambda: crew.count("began") == 1)
    name = (await job.arefresh()).attempts[0].worker
    await crew.join()
    doomed.kill()

    async def is_lost() -> bool:
        return any(one.outcome == "lost" for one in (await job.arefresh()).attempts)

    await until(is_lost)
    assert (await job.arefresh()).attempts[0].worker == name
    registry = crew.app.client.store.registry
    views = {view.record.id: view for view in await registry.workers(WorkersRequest(scope=ALL))}
    live = {
        view.record.id for view in await registry.workers(WorkersRequest(scope=ALL, seen_within=LIVE_WITHIN))
    }
    assert len(live - {name}) == 1
    (other,) = live - {name}
    assert name not in views or views[name].beat_at < views[other].beat_at
    crew.go()
    await job.aresult(60)


async def test_001_ix_2_a_job_whose_worker_is_killed_runs_elsewhere_and_completes(crew: Crew) -> None:
    """In its second attempt, alone in a child of the other process (S39); once to its end."""
    await crew.lead()
    (job,) = await crew.enqueue("hold", 1)
    doomed = crew.start()
    await until(lambda: crew.count("began") == 1)
    other = crew.start()
    doomed.kill()
    await until(lambda: crew.count("began") == 2)
    crew.go()
    assert await job.aresult(60) == 2
    (_, _, child), *_ = reversed(crew.lines())
    assert parent_of(child) == other.pid
    assert [(word, pid) for word, _, pid in crew.lines()] == [
        ("began", doomed.pid),
        ("began", child),
        ("ended", child),
    ]


def produce(folder: Path, first: int) -> None:
    """Enqueue a hundred jobs, every tenth of them urgent, from a thread with an application of its own."""
    with application(folder) as app:
        note = task_of(app, "note")
        for number in range(first, first + 100):
            queue = "urgent" if number % 10 == 0 else None
            note.using(queue=queue, tenant=f"t{number % 3}").enqueue(number)


async def test_001_ix_4_several_producers_and_workers_lose_nothing(crew: Crew) -> None:
    """Three of each, durations that vary; every job runs once."""
    for _ in range(3):
        crew.start()
    await asyncio.gather(*(asyncio.to_thread(produce, crew.folder, 1_000 * one) for one in range(3)))
    await until(lambda: crew.count("ended") == 300)
    app: Fairlane = crew.app
    await until(lambda: all_settled(app, 300))
    assert set(crew.times("began").values()) == {1}
    assert set(crew.times("ended").values()) == {1}


async def test_001_ix_4_urgent_jobs_go_first(crew: Crew) -> None:
    """Nine of ten starts are theirs while both queues have jobs."""
    await crew.enqueue("note", *range(100))
    await crew.enqueue("note", *range(1_000, 1_050), queue="urgent")
    worker = crew.start()
    await until(lambda: crew.count("ended") == 150)
    worker.terminate()
    assert await crew.ended(worker) == 0
    began = [number for word, number, _ in crew.lines() if word == "began"]
    assert sum(number >= 1_000 for number in began[:50]) >= 40


async def all_settled(app: Fairlane, number: int) -> bool:
    """Whether so many jobs have succeeded."""
    return (await app.jobs.acount())[State.SUCCEEDED] == number
