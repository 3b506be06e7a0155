"""The environment of a program whose imports a test looks at: without the modules that coverage loads."""

from __future__ import annotations

import os


def without_coverage() -> dict[str, str]:
    """Return our environment without what makes coverage measure the programs that tests start."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
