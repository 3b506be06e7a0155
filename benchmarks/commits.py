"""Compare two commits: the processor time of jobs that go well, in interleaved pairs.

    python -m benchmarks.commits --before 1c86d0e9 --pairs 20
    python -m benchmarks.commits --before HEAD~1 --only plain --url postgresql://…

Each pair runs `fairlane bench throughput` once with the other commit and once with this tree, so that
a busy moment of the machine meets both; every other pair begins with this tree. Both use the packages of this
environment. Trust the ratios: what a job costs depends on the machine, and on what else runs there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from benchmarks.measured_store import own_url
from fairlane.lab.bench.report import Amount, Goal, Report, ratio

ROOT: Final = Path(__file__).parent.parent
SCENARIOS: Final = ("async", "plain")
AGAINST: Final = "processor time of a job, after against before"
GOALS: Final = {AGAINST: Goal("at most 1.02 ×", 1.02)}


class Tree(NamedTuple):
    """One of both: its name, where its package is, and its store on a server."""

    name: str
    source: Path
    url: str | None

    def run(self, *words: str) -> bytes:
        """Run `fairlane` with the package of this tree."""
        return subprocess.run(  # noqa: S603 (our own program)
            [sys.executable, "-m", "fairlane", *words],
            cwd=self.source,
            env={**os.environ, "PYTHONPATH": str(self.source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        ).stdout

    def measure(self, scenario: str, jobs: int, folder: str) -> Report:
        """Drain so many jobs of one tenant with one worker process of default settings."""
        where = ["--folder", folder] if self.url is None else ["--url", self.url]
        sizes = ["--tenants", "1", "--processes", "1", "--jobs", str(jobs), "--rounds", "1"]
        words = ["bench", "throughput", "--only", scenario, *sizes, *where, "--json"]
        return msgspec.json.decode(self.run(*words), type=Report)


def extract(commit: str, folder: Path) -> Path:
    """Write the package of a commit into a folder; return where it can be imported from."""
    archive = subprocess.run(  # noqa: S603 (our own repository)
        ["git", "-C", str(ROOT), "archive", commit, "src"],  # noqa: S607 (git is git)
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)  # noqa: S603, S607 (as above)
    return folder / "src"


def pair(before: Tree, after: Tree, scenario: str, jobs: int, folder: str, number: int) -> Amounts:
    """Measure both once; which is first depends on the number."""
    trees = (before, after) if number % 2 == 0 else (after, before)
    reports = {tree.name: tree.measure(scenario, jobs, folder) for tree in trees}
    processor, drained = (
        {name: _amount(report, figure) for name, report in reports.items()}
        for figure in ("processor", "drained")
    )
    return {
        "processor time of a job, before": processor["before"],
        "processor time of a job, after": processor["after"],
        AGAINST: ratio(processor["after"], processor["before"]),
        "drained, before": drained["before"],
        "drained, after": drained["after"],
        "drained, after against before": ratio(drained["after"], drained["before"]),
    }


def _amount(report: Report, figure: str) -> Amount:
    (found,) = [one for one in report.measures if one.name.endswith(f": {figure}")]
    return Amount(found.median, found.unit)


_NUMBERS: Final = {
    "pairs": (20, "how often both are measured"),
    "jobs": (20_000, "jobs of each measurement"),
}


def main() -> int:
    """Read the arguments, measure, print."""
    parser = options("commits", __doc__, SCENARIOS, _NUMBERS)
    parser.add_argument("--before", required=True, help="the commit to compare this tree with")
    given = parser.parse_args()

    def make(folder: str) -> Scenarios:
        urls = [given.url and own_url(given.url, name) for name in ("before", "after")]
        before = Tree("before", extract(given.before, Path(folder)), urls[0])
        after = Tree("after", ROOT / "src", urls[1])
        for tree in (before, after):
            if tree.url is not None:
                tree.run("bench", "dedicate", "--url", tree.url)
        return {name: partial(pair, before, after, name, given.jobs, folder) for name in SCENARIOS}

    return run(given, make, GOALS, given.pairs)


if __name__ == "__main__":
    sys.exit(main())
