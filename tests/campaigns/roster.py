"""Every campaign: what it does, what must hold, how often it is to be done, and on which stores."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Final, NamedTuple

from tests.campaigns.children import kill_children, run_poison
from tests.campaigns.disks import die_in_a_write, fill_the_disk
from tests.campaigns.errand import Errand
from tests.campaigns.long import replay_seeds, set_clocks, simulate
from tests.campaigns.network import cut_answers, part_workers
from tests.campaigns.requests import fuzz_the_api
from tests.campaigns.servers import cut_off_a_crowd, kill_connections, kill_server
from tests.campaigns.slots import fire_slots
from tests.campaigns.soak import soak
from tests.campaigns.supervisors import kill_supervisors, restart_one_by_one
from tests.campaigns.workers import kill_workers, pause_workers
from tests.simulation.crowd import CORES


class Campaign(NamedTuple):
    """One row of the faults that are asked for."""

    unit: str
    """What is counted."""
    holds: str
    """What must be so, besides what the checker demands of every history."""
    goal: int
    """How many are asked for on each store, over all runs."""
    portion: int
    """How many one piece does at most."""
    stores: tuple[str, ...]
    play: Callable[[Errand], Coroutine[None, None, None]]
    cores: int = 0
    """How many cores a piece keeps busy, about; most pieces mostly wait."""
    is_timed: bool = False
    """Whether it is judged by the clock, so that nothing else may run at the same time."""
    is_in_order: bool = False
    """Whether a piece goes on where the last one has ended, so that two cannot be under way at once."""


SERVERS: Final = ("postgres", "redis")

CAMPAIGNS: Final[dict[str, Campaign]] = {
    "worker-kill": Campaign(
        "SIGKILLs of a worker in the middle of jobs",
        "its jobs run elsewhere (asked: p99 within 20 s)",
        200,
        100,
        ("sqlite", "postgres", "redis"),
        kill_workers,
    ),
    "worker-pause": Campaign(
        "workers stopped past their leases, then continued",
        "nothing that they say afterwards is accepted",
        100,
        50,
        ("sqlite", "postgres", "redis"),
        pause_workers,
    ),
    "supervisor-kill": Campaign(
        "SIGKILLs of a supervisor with two processes, half of them with its processes",
        "jobs of killed processes run elsewhere (asked: p99 within 20 s), the others end, and so do theirs",
        100,
        50,
        ("sqlite", "postgres", "redis"),
        kill_supervisors,
    ),
    "rolling-restart": Campaign(
        "rolling restarts of two processes under load",
        "each job starts exactly once",
        50,
        25,
        ("sqlite", "postgres", "redis"),
        restart_one_by_one,
    ),
    "child-kill": Campaign(
        "SIGKILLs of a child process in the middle of a job",
        "its job starts again, and no other job loses an attempt",
        200,
        100,
        ("sqlite", "postgres", "redis"),
        kill_children,
    ),
    "poison": Campaign(
        "jobs of eleven kinds that harm whoever runs them, beside healthy jobs",
        "each is dead after at most three crashes; no healthy job dies or fails an attempt",
        110,
        55,
        ("sqlite", "postgres", "redis"),
        run_poison,
    ),
    "server-kill": Campaign(
        "SIGKILLs of the server while jobs are enqueued and run",
        "nothing is lost within the stated durability, and workers go on by themselves",
        100,
        50,
        ("postgres", "redis", "redis-always"),
        kill_server,
    ),
    "connection-kill": Campaign(
        "connections ended by the server, under load",
        "enqueuers and workers go on by themselves",
        500,
        250,
        SERVERS,
        kill_connections,
    ),
    "commit-cut": Campaign(
        "enqueues cut off after the store had done them, or at any byte",
        "there is exactly one job",
        200,
        200,
        SERVERS,
        cut_answers,
    ),
    "partition": Campaign(
        "times that workers were parted from their store for 0.1 to 20 s",
        "workers go on by themselves",
        200,
        100,
        SERVERS,
        part_workers,
    ),
    "herd": Campaign(
        "times that 200 clients were cut off at once",
        "all have enqueued again within 10 s",
        20,
        10,
        SERVERS,
        cut_off_a_crowd,
        cores=CORES,
        is_timed=True,
    ),
    "crash-points": Campaign(
        "torn writes and cuts of the power, at any step of the disk",
        "the file is whole, and has all that was acknowledged",
        1_000,
        350,
        ("sqlite",),
        die_in_a_write,
        cores=1,
    ),
    "full-disk": Campaign(
        "runs of all scenes on a disk that is full or fails at some step",
        "each error is clear, nothing is half done, and the same store goes on",
        200,
        120,
        ("sqlite",),
        fill_the_disk,
        cores=1,
    ),
    "clock": Campaign(
        "jumps of the store's clock by -5 s to an hour while jobs run",
        "workers go on, and nothing runs twice but what was lost",
        100,
        100,
        ("sqlite", "postgres", "redis"),
        set_clocks,
    ),
    "slots": Campaign(
        "slots of schedules, while their schedulers are killed between any two calls, pauses included",
        "each has one job, none is early, none is missed that was to be taken",
        100_000,
        10_000,
        ("sqlite", "postgres", "redis"),
        fire_slots,
        cores=1,
    ),
    "requests": Campaign(
        "requests to the API, half of them such as its description forbids",
        "no 5xx; each status, field and type of an answer is described",
        100_000,
        5_000,
        ("sqlite",),
        fuzz_the_api,
        cores=1,
    ),
    "soak": Campaign(
        "jobs run by one worker in a row",
        "memory grows by at most 5 %, and jobs wait no longer",
        1_000_000,
        1_000_000,
        ("sqlite", "postgres", "redis"),
        soak,
        cores=CORES,
    ),
    "simulation": Campaign(
        "seeds of the simulation",
        "every promise that is judged there",
        10_000,
        2_500,
        ("model",),
        simulate,
        cores=CORES,
        is_in_order=True,
    ),
    "replay": Campaign(
        "sequences of the simulation done to the store",
        "every answer is the oracle's, to the microsecond",
        1_000,
        500,
        ("sqlite", "postgres", "redis"),
        replay_seeds,
        cores=1,
        is_in_order=True,
    ),
}
"""The order is that of a run with nothing done before."""
