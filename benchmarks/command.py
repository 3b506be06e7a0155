"""The command line of a benchmark of several scenarios: its options, a folder, rounds, the report."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Amounts, play, tell
from benchmarks.measured_store import clean
from fairlane.lab.bench.report import Goal

Scenarios = Mapping[str, Callable[[int], Amounts]]
"""What is measured, by name: called with the number of the round."""


def options(
    name: str, about: str | None, scenarios: Sequence[str], numbers: Mapping[str, tuple[int, str]]
) -> argparse.ArgumentParser:
    """Return the options that all have, and numbers of its own: each with its default and what it is."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", help="measure this server, under names of its own")
    parser.add_argument("--only", choices=scenarios, action="append", help="this scenario; may repeat")
    for option, (default, text) in numbers.items():
        parser.add_argument(f"--{option}", type=int, default=default, help=f"{text} ({default})")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a real disk counts")
    parser.add_argument("--json", action="store_true")
    return parser


def run(
    arguments: argparse.Namespace,
    make: Callable[[str], Scenarios],
    goals: Mapping[str, Goal],
    rounds: int,
) -> int:
    """Play the chosen scenarios and tell what was found; what was made on a server is removed.

    `make` gets a folder, which is removed, too.
    """
    with TemporaryDirectory(dir=arguments.folder) as folder:
        try:
            scenarios = make(folder)
            wanted = {name: one for name, one in scenarios.items() if name in (arguments.only or scenarios)}
            tell(play(wanted, goals, rounds), as_json=arguments.json)
        finally:
            if arguments.url is not None:
                asyncio.run(clean(arguments.url))
    return 0
