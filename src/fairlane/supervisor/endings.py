"""Say how a worker process has ended, and what follows from it. Starts and ends nothing."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from fairlane.runtime import exits

USAGE: Final = 2
CONFIG: Final = 5

_MEANING: Final[Mapping[int, str]] = {
    exits.OK: "it was told to stop",
    1: "an error that nobody caught",
    USAGE: "the command line is wrong",
    exits.STORE_GONE: "the store cannot be used",
    CONFIG: "a setting is wrong, or the application cannot be imported",
    exits.INTERNAL_ERROR: "its event loop was blocked, or its own code failed",
    exits.REPLACE: "it asks to be replaced",
}


class Consequence(Enum):
    """What follows from the end of a process that nobody had told to end."""

    REPLACED = "starts again at once"
    CRASHED = "starts again after a pause"
    MISCONFIGURED = "starts again after the longest pause"
    FINAL = "the supervisor ends"


class Ending(NamedTuple):
    """How a process has ended: the exit code, or minus the number of the signal that killed it."""

    code: int
    is_out_of_memory: bool = False

    def __str__(self) -> str:
        """Return it in words.

        >>> str(Ending(-9, is_out_of_memory=True))
        'was killed by SIGKILL: the kernel was out of memory'
        >>> str(Ending(70))
        'ended with exit code 70: its event loop was blocked, or its own code failed'
        """
        if self.code >= 0:
            meaning = _MEANING.get(self.code)
            return f"ended with exit code {self.code}" + (f": {meaning}" if meaning else "")
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        return f"was killed by {name}" + (": the kernel was out of memory" if self.is_out_of_memory else "")

    @property
    def exit_code(self) -> int:
        """The exit code of a supervisor that ends because of this."""
        return self.code if self.code >= 0 else exits.INTERNAL_ERROR


def consequence(ending: Ending, *, was_ready: bool, was_any_ready: bool) -> Consequence:
    """Decide what follows. `was_any_ready`: some process of this command has been ready before.

    A wrong setting at the first start ends the command. Later it is more likely a deployment that is half
    done, and other processes work: so it is tried again, without haste. A store that is gone while a worker
    used it ends the command, because a new worker might create an empty one in its place; one that cannot be
    reached by a process that starts later may be back soon.

    >>> consequence(Ending(5), was_ready=False, was_any_ready=False).name
    'FINAL'
    >>> consequence(Ending(75), was_ready=True, was_any_ready=True).name
    'REPLACED'
    """
    match ending.code:
        case exits.OK | exits.REPLACE if was_ready:
            return Consequence.REPLACED
        case exits.STORE_GONE if was_ready or not was_any_ready:
            return Consequence.FINAL
        case 2 | 5:  # USAGE, CONFIG
            return Consequence.MISCONFIGURED if was_any_ready else Consequence.FINAL
        case _:
            return Consequence.CRASHED


def memory_kills(root: Path = Path("/")) -> int:
    """Return how many processes the kernel has killed for lack of memory, in this control group or at all."""
    for path in (*_memory_events(root), root / "proc/vmstat"):
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _memory_events(root: Path) -> list[Path]:
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [
        root / "sys/fs/cgroup" / line.removeprefix("0::/") / "memory.events"
        for line in lines
        if line.startswith("0::/")
    ]
