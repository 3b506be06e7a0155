"""Print the results of checks: a table, then what to do about each that is not well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView
from fairlane.diagnosis.result import CheckResult


def result_json(one: CheckResult) -> dict[str, Any]:
    """Return a result for programs."""
    return {"check": one.check, "level": one.level, "what": one.what, "advice": one.advice}


_VIEW: Final[TableView[CheckResult]] = TableView(
    {"LEVEL": lambda one: one.level, "CHECK": lambda one: one.check, "FINDING": lambda one: one.what},
    result_json,
)


def print_results(invocation: Invocation, results: Sequence[CheckResult]) -> None:
    """Print results, for people with the advice below."""
    invocation.output.table(results, _VIEW, empty="No problems found.")
    if invocation.is_json:
        return
    for one in results:
        if one.advice and one.level != "ok":
            invocation.output.line("")
            invocation.output.line(f"{one.level}: {one.what}")
            invocation.output.line(f"  {one.advice}")
