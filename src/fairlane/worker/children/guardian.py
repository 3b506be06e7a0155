"""A program of its own: kills the child processes of a worker that is gone or cannot renew their leases.

Started by `guardian_link` with a bare interpreter, and fed through standard input:

    +PID        a child, which leads the process group of this number, has started
    -PID        it has ended
    =SECONDS    the leases are good until the machine's monotonic clock shows this

At the end of the input the worker is gone. It may also be stopped, or hold its interpreter, and say nothing
more; the clock does not wait for it. Imports nothing of Fairlane.
"""

from __future__ import annotations

import os
import select
import signal
import time


def kill(groups: set[int]) -> None:
    """Kill all processes of these groups."""
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def main() -> None:
    """Watch until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    good_until: float | None = None
    rest = b""
    while True:
        wait = None if good_until is None or not groups else max(0.0, good_until - time.monotonic())
        if not select.select([0], [], [], wait)[0]:
            kill(groups)
            good_until = None  # until the worker speaks again
            continue
        data = os.read(0, 65_536)
        if not data:
            kill(groups)
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line[:1] == b"+":
                groups.add(int(line[1:]))
            elif line[:1] == b"-":
                groups.discard(int(line[1:]))
            elif line[:1] == b"=":
                good_until = float(line[1:])


if __name__ == "__main__":
    main()
