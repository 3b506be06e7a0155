"""The measured pages of docs/proofs: what each runs, and what renders it.

A page of another benchmark joins here: a command that prints one JSON object, a function that lays that
object out, and one that gives the figures which answer goals of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from fairlane.lab.bench.report import Measure
from tools.proofs import bench_page, figures_page, peers_page, snapshot_page, worker_page
from tools.proofs.measurement import PLOTS, ROOT, Measurement
from tools.proofs.stores import STORES, Store, prefix

ROUNDS: Final = 5


class Page(NamedTuple):
    """docs/proofs/<name>.json and .md: the words after `python -m` that measure it, and what renders it.

    `full` and `small` are the sizes for figures and for a quick look; `hidden` is what changes no figure:
    that the answer is JSON, and where pictures go.
    """

    name: str
    command: tuple[str, ...]
    full: str
    small: str
    hidden: tuple[str, ...]
    render: Callable[[Measurement], str]
    figures: Callable[[Measurement], Sequence[Measure]]
    store: Store = "sqlite"

    def words(self, *, small: bool = False) -> tuple[str, ...]:
        """Return the command line that repeats it, as shown."""
        return (*self.command, *(self.small if small else self.full).split())

    def hidden_words(self, folder: Path | None, url: str | None = None) -> tuple[str, ...]:
        """Return the arguments that are not shown: the folder of files, and the store."""
        where = () if folder is None else ("--folder", str(folder.resolve()))
        return (*where, *(() if url is None else ("--url", url)), *self.hidden)


def pages_of(store: Store) -> tuple[Page, ...]:
    """Return the pages of one store in the order in which they run: short ones first."""
    on = "" if store == "sqlite" else f" on {STORES[store]}"
    plots = PLOTS if store == "sqlite" else PLOTS / store

    def bench(name: str, title: str, about: str, command: str, full: str, small: str) -> Page:
        whole = f"{prefix(store)}{name}"
        return Page(
            whole,
            ("fairlane", "bench", *command.split()),
            f"{full} --rounds {ROUNDS}",
            f"{small} --rounds 1",
            ("--plot", str(plots.relative_to(ROOT)), "--json"),
            partial(bench_page.page, name=whole, title=f"{title}{on}", about=about),
            bench_page.figures,
            store,
        )

    def several(name: str, title: str, about: str, command: str, full: str, small: str) -> Page:
        whole = f"{prefix(store)}{name}"
        return Page(
            whole,
            tuple(command.split()),
            full,
            f"{small} --rounds 1",
            ("--json",),
            partial(figures_page.page, name=whole, title=f"{title}{on}", about=about),
            figures_page.figures,
            store,
        )

    return (
        Page(
            f"{prefix(store)}worker",
            ("benchmarks.worker", "--memory", "0"),
            "--seconds 20",
            "--seconds 2",
            (),
            partial(worker_page.page, name=f"{prefix(store)}worker", store=store),
            partial(worker_page.figures, store=store),
            store,
        ),
        bench(
            "latency",
            "Latency",
            "How long one durable enqueue takes, and how long a job waits for a worker, idle or half busy.",
            "latency",
            "--seconds 6",
            "--seconds 1 --jobs 200",
        ),
        bench(
            "throughput",
            "Throughput",
            "Jobs a second in and out, and what each costs the processor, with handlers that do nothing.",
            "throughput --tenants 1,1000 --processes 1,2",
            "--jobs 40000",
            "--jobs 1000",
        ),
        bench(
            "tenants",
            "Very many tenants",
            "As many tenants as jobs, against the same jobs under one tenant.",
            "throughput --only async --tenants 1,100000 --processes 1 --slots 100",
            "--jobs 100000",
            "--jobs 1000",
        ),
        bench(
            "scale",
            "Cost as work grows",
            "What a claim costs as tenants, backlog and held jobs grow, through the store's contract.",
            "scale",
            "--jobs 1000 --tenants 100,100000 --backlog 10000,1000000",
            "--jobs 50 --tenants 10,1000 --backlog 1000,10000",
        ),
        bench(
            "fairness",
            "Fairness",
            "Who waits for whom, and who gets how much. *alone* is the quiet tenants' load without the flood,"
            "\n*fifo* the same arrivals under one tenant: first in, first out.",
            "fairness",
            "--seconds 3",
            "--seconds 1",
        ),
        several(
            "failing",
            "When work fails",
            "*storm*: all jobs of one tenant fail with one cause, are retried and die, beside ten small"
            "\ntenants; *calm* is the same with jobs that succeed. *letters*: what people ask of many dead"
            "\nletters, and one cause run again, as `app.dead` does it. *round trips*: what a settlement of"
            "\n50 jobs sends to a server.",
            "benchmarks.failing",
            "--jobs 100000 --letters 100000 --again 10000 --rounds 3",
            "--jobs 1000 --letters 1000 --again 50",
        ),
        several(
            "guards",
            "Breakers and budgets",
            "*behind*: claims of others beside a million jobs behind an open breaker. *opening*: 16 workers"
            "\ncall a service that goes down. *probe*: 16 claimants ask while it is open, and once it may be"
            "\ntried. *budget*: 16 claimants spend until nothing is left. *cost*: the processor time of a"
            "\nworker process by job, in pairs, without a server's.",
            "benchmarks.guards",
            "--jobs 1000000 --spending 10000 --pairs 20 --rounds 1",
            "--jobs 2000 --claims 40 --opening 400 --turns 3 --spending 300 --pairs 2 --guarded 500",
        ),
        several(
            "children",
            "Handlers in child processes",
            "*throughput*: jobs that do nothing, in two children. *start*: from an enqueue to the handler.\n"
            "*cores*: handlers that compute, in one child and in two. *memory*: a worker with its children.",
            "benchmarks.children",
            "--rounds 3",
            "--jobs 500 --computing 20 --most 1000",
        ),
        several(
            "web",
            "The dashboard",
            "*pages*: every page of a store with a million finished jobs, 100,000 dead letters and 10,000\n"
            "tenants, each with a job that waits, and searches in it. *viewers*: a worker beside open\n"
            "dashboards. *start*: from the start of the process to the first page with its assets.",
            "benchmarks.web",
            "--rounds 1",
            "--jobs 2000 --tenants 20 --asks 5 --viewers 5 --work 1000",
        ),
    )


PEERS: Final = Page(
    "peers",
    ("benchmarks.peers",),
    "--rounds 5 --jobs 8000 --singles 60",
    "--rounds 1 --jobs 400 --singles 5 --floods 0 huey-sqlite",
    ("--json",),
    peers_page.page,
    peers_page.figures,
)
"""Other job queues, on all stores in one run: it is measured with SQLite's pages."""

SNAPSHOT: Final = Page(
    "postgres-snapshot",
    ("tests.postgres.old_snapshot",),
    "--minutes 10 --more 0.25",
    "--minutes 0.05 --more 0",
    ("--json",),
    partial(snapshot_page.page, name="postgres-snapshot"),
    snapshot_page.figures,
    "postgres",
)

PAGES: Final = (*pages_of("sqlite"), PEERS, *pages_of("postgres"), SNAPSHOT, *pages_of("redis"))

UNMEASURED: Final = frozenset(f"{prefix(store)}guards" for store in STORES)
"""Pages that wait for an idle machine. Who keeps a measurement of one takes its name out."""
