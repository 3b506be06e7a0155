"""A server that loses its power: of its append-only file remains what it had synced, and not one byte more.

A killed process loses nothing that it had written: the system keeps that. What a power cut takes is known
only from the calls that the server makes: `strace` writes down each write and each sync of the file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Final

from tests.servers.debian import find
from tests.servers.valkey import ValkeyServer

_PATIENCE: Final = 30
_LINE: Final = re.compile(
    r"(?P<thread>\d+) +(?:(?P<call>\w+)\(\d+<(?P<file>[^>]*)>|<\.\.\. \w+ resumed>)"
    r".*?(?:= (?P<result>\d+))?$"
)
"""A call, or the rest of one that was written down before it had ended."""


class PoweredServer(ValkeyServer):
    """A server with an append-only file whose calls are written down; LookupError if nobody can do that."""

    def __init__(self, *settings: str, folder: Path | str | None = None, kind: str | None = None) -> None:
        """Look for the program that looks on."""
        self._strace = find("strace")
        super().__init__(
            "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", *settings, folder=folder, kind=kind
        )
        self._starts = count(1)
        self._trace = self.home / "trace.0"
        self._before = 0

    def _command(self) -> list[str]:
        self._trace = self.home / f"trace.{next(self._starts)}"
        self._before = self.file.stat().st_size if self.home.joinpath("appendonlydir").exists() else 0
        # -D: the server is our child, and whoever looks on is not.
        looks_on = ("-D", "-f", "-y", "-s", "0", "-e", "trace=write,fdatasync,fsync", "-o", str(self._trace))
        return [str(self._strace.path), *looks_on, *super()._command()]

    @property
    def file(self) -> Path:
        """Return the file that grows."""
        (file,) = (self.home / "appendonlydir").glob("*.incr.aof")
        return file

    def cut_power(self) -> int:
        """End it as a power cut does; return the number of bytes that it had written and that are gone."""
        self.kill()
        until = time.monotonic() + _PATIENCE
        end = re.compile(rf"^{(self.home / 'pid').read_text()} +\+\+\+ killed", re.MULTILINE)
        while not end.search(self._trace.read_text()):
            assert time.monotonic() < until, "nobody has seen the server's end"
            time.sleep(0.01)
        kept = self._before + synced(self._trace.read_text().splitlines(), str(self.file))
        gone = self.file.stat().st_size - kept
        with self.file.open("r+b") as file:
            file.truncate(kept)
        return gone


def synced(calls: Iterable[str], file: str) -> int:
    """Count the bytes of a file that were synced: those written before the begin of a sync that has ended.

    >>> calls = ['1 write(9</f>, "", 5) = 5', "2 fsync(9</f> <unfinished ...>", '1 write(9</f>, "", 7) = 7']
    >>> synced(calls, "/f"), synced([*calls, "2 <... fsync resumed>) = 0"], "/f")
    (0, 5)
    """
    written = safe = 0
    begun: dict[str, tuple[str, int]] = {}
    for found in filter(None, map(_LINE.match, calls)):
        if found["call"] and found["file"] == file:
            begun[found["thread"]] = (found["call"], written)
        is_ours = found["thread"] in begun and found["file"] in {None, file}
        if is_ours and found["result"] is not None:
            call, before = begun.pop(found["thread"])
            if call == "write":
                written += int(found["result"])
            else:
                safe = max(safe, before)
    return safe
