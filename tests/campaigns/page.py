"""The page of the faults, made of the book's lines and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from tests.campaigns.book import ROOT, Piece, Tally, last_enough, percentile, read, tallies
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS

PAGE: Final = ROOT / "docs" / "proofs" / "faults.md"

_HEAD: Final = """\
# Faults

Generated from `docs/proofs/faults.jsonl`, to which `make prove` appends; do not edit by hand.

Real servers and real `fairlane worker` processes are harmed on purpose. What handlers, enqueuers and
settlements saw is written down [outside of the store](../reference/ledger.md), and a checker decides from
that alone: nothing acknowledged is lost, no attempt is settled twice, nothing stale is accepted, nothing runs
that nobody enqueued, all drains afterwards, and the books equal a recount. How it is done:
[the fault lab](../explanation/fault-lab.md).

*n* adds up over runs, and so over commits. The bound is what n trials with so many failures leave possible at
95 %: with none in n it is 1 - 0.05^(1/n). Recovery is the time from a fault, or from its end if it has one,
until what was harmed worked again. It was measured with the settings of the last column, short leases among
them, on a machine that had other work to do, other campaigns at least (the load is its number of runnable
processes): it bounds what to expect, and is no measure of speed.

Failures are of all runs. What was measured, in the last three columns, is of the last runs that have as many
trials as are asked for: what a tree of long ago took says nothing of this one.

What is not here: `clock` sets a store's clock while jobs run. `slots` goes through nights in virtual time,
with three schedulers that are an hour fast or slow, over changes of clocks both ways; it kills no process, it
ends schedulers before a call is sent or before its answer is read. A soak's jobs are judged in chapters of
some thousand, each when it is over, and its books at the end.
"""


def write_page() -> None:
    """Write the page anew."""
    PAGE.write_text(page(read()), encoding="utf-8")


def page(pieces: Sequence[Piece]) -> str:
    """Lay out what was done and found."""
    sums = tallies(pieces)
    parts = chain(
        [_HEAD],
        *(_store(store, sums, pieces) for store in STORES if any(key[1] == store for key in sums)),
        _found(pieces),
        _where(pieces),
    )
    return "\n".join(parts) + "\n"


def _store(store: str, sums: dict[tuple[str, str], Tally], pieces: Sequence[Piece]) -> Iterator[str]:
    rows = [(name, sums[name, store]) for name in CAMPAIGNS if (name, store) in sums]
    if not rows:
        return
    yield from [f"## {_TITLES[store]}", ""]
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|---" * len(_COLUMNS) + "|"
    for name, tally in rows:
        campaign = CAMPAIGNS[name]
        last = last_enough(pieces, name, store, campaign.goal)
        measured = tallies(last)[name, store]
        settings = ", ".join(f"{key} {value}" for key, value in last[-1].settings.items())
        loads = [one.load for one in last]
        cells = [
            f"`{name}`",
            campaign.unit,
            campaign.holds,
            f"{tally.n:,}",
            f"{campaign.goal:,}",
            str(tally.failed),
            f"{100 * tally.bound:.2g} %",
            _recovery(measured.recovery),
            ", ".join(f"{key.replace('_', ' ')} {value:,g}" for key, value in measured.figures.items()),
            f"{settings}; load {min(loads):g} to {max(loads):g}",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _recovery(seconds: Sequence[float]) -> str:
    if not seconds:
        return ""
    p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
    return f"{p50:.2f} / {p99:.2f} / {max(seconds):.2f} s"


def _found(pieces: Sequence[Piece]) -> Iterator[str]:
    """Tell what was found, mended and not."""
    yield from ["## What was found", ""]
    bad = [one for one in pieces if one.failures]
    if not bad:
        yield from ["No piece has failed.", ""]
        return
    for one in bad:
        story = one.failures[0].replace("\n", " ")[:300].replace("|", "\\|")
        state = f"mended: {one.mended}" if one.mended else "**not mended**"
        which = f"`{one.campaign}` on {one.store}, seed {one.seed}, commit {one.commit}"
        yield f"- {one.at}, {which}: {story} ({state})"
    yield ""


def _where(pieces: Sequence[Piece]) -> Iterator[str]:
    """Say on what all of it was run."""
    versions = sorted(
        {
            f"{key} {value}" if key != "store" else value
            for one in pieces
            for key, value in one.versions.items()
        }
    )
    commits = list(dict.fromkeys(one.commit for one in pieces))
    hosts = sorted(
        {f"{one.host['cores']} cores, {one.host['system']} {one.host['kernel']}" for one in pieces}
    )
    yield from ["## Where", ""]
    yield f"- {len(pieces)} pieces, {sum(one.seconds for one in pieces) / 60:.0f} minutes in all"
    yield f"- machines: {'; '.join(hosts)}"
    yield f"- versions: {', '.join(versions)}"
    yield f"- commits: {', '.join(commits)}"


_COLUMNS: Final = (
    "campaign",
    "what is counted",
    "what must hold",
    "n",
    "asked",
    "failures",
    "95 % bound",
    "recovery p50 / p99 / longest",
    "figures",
    "settings, load",
)
_TITLES: Final = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "redis": "Redis, synced once a second",
    "redis-always": "Redis, synced at every command",
    "model": "The simulation, which has no store of its own",
}
