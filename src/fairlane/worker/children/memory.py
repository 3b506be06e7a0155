"""Read the resident memory of process groups, and who belongs to them, from /proc. Linux only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = "/proc"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class ProcessLine(NamedTuple):
    """One process: its parent, its group, its resident memory in bytes."""

    pid: int
    parent: int
    group: int
    resident: int


def is_readable() -> bool:
    """Whether this system shows the memory of processes."""
    return Path(_PROC, "self", "stat").exists()


def families(leaders: Iterable[int]) -> dict[int, list[ProcessLine]]:
    """Return, for each leader of a group, its group and all descendants, wherever they have moved."""
    processes = list(_processes())
    children: dict[int, list[ProcessLine]] = {}
    for one in processes:
        children.setdefault(one.parent, []).append(one)
    found: dict[int, list[ProcessLine]] = {}
    for leader in leaders:
        family = {one.pid: one for one in processes if leader in (one.pid, one.group)}
        unvisited = list(family)
        while unvisited:
            for one in children.get(unvisited.pop(), ()):
                if one.pid not in family:
                    family[one.pid] = one
                    unvisited.append(one.pid)
        found[leader] = list(family.values())
    return found


def resident_of(family: Iterable[ProcessLine]) -> int:
    """Return the resident memory of all of them together; shared pages count for each."""
    return sum(one.resident for one in family)


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def kill_family(leader: int) -> None:
    """Kill a group and all descendants of its leader, also those that left the group."""
    escaped = [one.pid for one in families([leader])[leader] if one.group != leader]
    signal_group(leader, signal.SIGKILL)
    for pid in escaped:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[ProcessLine]:
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 (four times a second: a Path for each costs more than reading)
    except OSError:
        return
    for name in names:
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                yield _line(int(name))


def _line(pid: int) -> ProcessLine:
    with open(f"{_PROC}/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 (as above)
        # The name of the program, in parentheses, may hold anything.
        fields = file.read(2_048).rpartition(b")")[2].split()
    return ProcessLine(pid, int(fields[1]), int(fields[2]), int(fields[21]) * _PAGE)
