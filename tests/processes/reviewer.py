"""A person who runs all dead letters again, or resolves them, and says a dot after each pass.

The next pass begins with a byte of the input, or at the input's end.

python -m tests.processes.reviewer sqlite:///FILE reprocess
"""

from __future__ import annotations

import os
import sys

from fairlane import BulkResult, Fairlane


def dot(_: BulkResult) -> None:
    """Say that a pass is over, and wait until the next one may begin."""
    print(end=".", flush=True)
    os.read(sys.stdin.fileno(), 1)


def main(url: str, verb: str) -> None:
    """Do it to all that await a decision."""
    app = Fairlane(url)
    with app.acting_as("ann"):
        getattr(app.dead, f"{verb}_all")(note="the printer is back", on_progress=dot)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
