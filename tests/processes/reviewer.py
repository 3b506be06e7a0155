"""A person who runs all dead letters again, or resolves them, and says a dot after each pass.

python -m tests.processes.reviewer sqlite:///FILE reprocess
"""

from __future__ import annotations

import sys

from fairlane import BulkResult, Fairlane


def dot(_: BulkResult) -> None:
    """Say that a pass is over."""
    print(end=".", flush=True)


def main(url: str, verb: str) -> None:
    """Do it to all that await a decision."""
    app = Fairlane(url)
    with app.acting_as("ann"):
        getattr(app.dead, f"{verb}_all")(note="the printer is back", on_progress=dot)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
