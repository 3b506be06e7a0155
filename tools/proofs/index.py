"""The index of docs/proofs: every goal with what was measured, and the pages with their commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlane.lab.bench.report import Measure
from tools.proofs.bench_page import amount, limit
from tools.proofs.goals import ProofGoal, sections_of
from tools.proofs.measurement import PROOFS, SMALL, Measurement
from tools.proofs.stores import STORES, Store, prefix

_HEAD: Final = """\
# Proofs

Generated from the JSON files beside this page, which `make proofs` writes; do not edit by hand.

What we ask of Fairlane on each store, and what we measured. A goal is met when the medians of all its figures
are within it. Trust ratios within one run; an absolute figure depends on the machine. Each page has the
command that repeats it, the machine, the versions, the settings, and the lowest and highest round.
"""

_OTHERS: Final = {
    "sqlite-contract": "where the time of a job goes in the SQLite store",
    "worker-profile": "where the time of a job goes in a worker",
    "postgres-backlog": "what a claim costs while ten million jobs wait on PostgreSQL",
    "redis-bounds": "how long one script holds a Redis or Valkey server",
    "redis-losses": "what a Redis or Valkey server loses by a kill, a power cut and a failover",
    "dst": "schedules around every change of every zone's clock, compared with a reference minute by minute",
    "simulation": "broken promises that the simulation finds, and after how many seeds",
    "faults": "workers, servers, networks and disks harmed on purpose, and what was lost: nothing, how often",
    "experiments": "measurements behind decisions: what was tried, what it gained, what was rejected",
    "sabotage": "each promise broken on purpose, and the test that noticed",
}
"""Pages that somebody else makes; one that is not there is not named."""

Figures = Mapping[str, Sequence[Measure]]


def met(asked: ProofGoal, figures: Figures, store: Store = "sqlite") -> bool | None:
    """Whether a goal is met; None if nothing was measured."""
    found = _answers(asked, figures, store)
    return all(one.met for one in found) if found else None


def _answers(asked: ProofGoal, figures: Figures, store: Store) -> list[Measure]:
    name = asked.page if asked.page == "peers" else f"{prefix(store)}{asked.page}"
    return asked.answers(figures.get(name, ()))


def index(measurement: Mapping[str, Measurement], figures: Figures) -> str:
    """Return the page."""
    return "\n".join(_lines(measurement, figures)) + "\n"


def count(figures: Figures, store: Store = "sqlite") -> str:
    """Return how many goals are met on a store, in words."""
    found = [met(asked, figures, store) for section in sections_of(store).values() for asked in section]
    yes, no, unknown = (found.count(answer) for answer in (True, False, None))
    return f"{yes} goals met, {no} not met, {unknown} not measured"


def unmet(figures: Figures, store: Store) -> int:
    """Return how many goals are not met on a store."""
    return [met(asked, figures, store) for section in sections_of(store).values() for asked in section].count(
        False
    )


def _lines(measurement: Mapping[str, Measurement], figures: Figures) -> Iterator[str]:
    yield _HEAD
    if any(one.small for one in measurement.values()):
        yield f"{SMALL} Small: {', '.join(name for name, one in measurement.items() if one.small)}."
        yield ""
    for store, title in STORES.items():
        yield f"- [{title}](#{title.lower()}): {count(figures, store)}"
    for store, title in STORES.items():
        yield from _of_store(store, title, figures)
    yield from _claims(figures)
    yield from ["", "## Pages", "", "| page | command | commit |", "|---|---|---|"]
    for name, one in measurement.items():
        yield f"| [{name}]({name}.md) | `{one.command}` | {one.commit} |"
    yield ""
    yield from (
        f"- [{name}]({name}.md): {what}"
        for name, what in _OTHERS.items()
        if name not in measurement and (PROOFS / f"{name}.md").exists()
    )


def _claims(figures: Figures) -> Iterator[str]:
    """Show what a claim costs in every case of `scale`, one table per store."""
    for store, title in STORES.items():
        read = {one.name: amount(one) for one in figures.get(f"{prefix(store)}scale", ())}
        if read:
            yield from ["", f"## What a claim of ten jobs costs on {title}", ""]
            yield from ["| in a store with | p50 | p95 |", "|---|---:|---:|"]
        for name, value in read.items():
            case, _, cut = name.partition(": ")
            if cut == "p50":
                yield f"| {case} | {value} | {read[f'{case}: p95']} |"


def _of_store(store: Store, title: str, figures: Figures) -> Iterator[str]:
    yield from ["", f"## {title}"]
    if not any(name.startswith(prefix(store)) and name != "peers" for name in figures):
        yield from ["", f"Not measured yet: `make proofs STORE={store}`."]
        return
    for section, goals in sections_of(store).items():
        yield from ["", f"### {section}", "", "| what | asked | measured | met |", "|---|---|---|---|"]
        for asked in goals:
            answer = f"{_measured(asked, figures, store)} | {_met(asked, figures, store)}"
            yield f"| {asked.what} | {asked.goal} | {answer} |"


def _measured(asked: ProofGoal, figures: Figures, store: Store) -> str:
    found = _answers(asked, figures, store)
    told = [f"{one.name}: {amount(one)} ({limit(one)})" for one in found]
    return "<br>".join(told) or asked.why or "not in the kept runs"


def _met(asked: ProofGoal, figures: Figures, store: Store) -> str:
    return {None: "not measured", True: "yes", False: "**no**"}[met(asked, figures, store)]
