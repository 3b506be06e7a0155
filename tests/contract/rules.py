"""List which rules of the semantics have tests, and what the others wait for. Runs no test.

A test names its rules in its docstring: in the contract suite at the very beginning (`S13, S15: …`),
elsewhere anywhere in it. `python -m tests.contract.rules` prints the table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = Path(__file__).parents[1]
SEMANTICS: Final = TESTS.parent / "docs" / "reference" / "semantics.md"
CONTRACT: Final = TESTS / "contract"
OTHERS: Final = (TESTS / "model", TESTS / "app", TESTS / "properties")

LEFT: Final[dict[int, str]] = {
    6: "web, command line, alerts: what they show and send is redacted; a store keeps what it is given",
    10: "command line, for what `doctor` says; the client chooses the tenant before a store is asked",
    47: "worker",
    49: "worker: it asks the lane's clock of the model, and a store sees only the queue requests",
    55: "command line",
    66: "SQLite, PostgreSQL and Redis stores, which can be away, and the worker, which outlasts that",
    67: "SQLite and PostgreSQL stores: it takes two versions of a schema",
    69: "worker: a store sees how an attempt ended, and nothing of the process that it ran in",
    71: "worker: a store knows no resource",
    77: "duties: a store knows no subscription",
    78: "model: a store is asked for what it compares itself, and knows no query",
    91: "web: a store keeps users, tokens and sessions (S79), and knows no request",
    92: "web, worker: a store is looked at, and knows no probe",
    94: "model: a store counts (S50) and says who is first in line (S93)",
    96: "web: a store knows no page",
    97: "command line: a store knows no terminal",
    98: "web: a store knows no request",
    106: "model: a store is told which instants are slots",
    109: "duties: a store keeps slots and jobs, and fires nothing",
    127: "duties: a store renews a lead or not, and knows no event loop",
}
"""Rules without a test in the contract suite, and the work that they wait for."""

_RULE: Final = re.compile(r"^- \*\*S(\d+) (.+?)\.\*\*", re.MULTILINE)
_HEAD: Final = re.compile(r"S\d+(?:, S\d+)*(?=: )")
_MENTION: Final = re.compile(r"\bS(\d+)\b(?:[-–]S(\d+)\b)?")
_LONGEST_RANGE: Final = 10
"""A longer range is about everything, and so about no rule in particular."""


class Case(NamedTuple):
    """One test function: its file, name and docstring."""

    file: str
    name: str
    docstring: str


def titles(page: str) -> dict[int, str]:
    """Read the rules of the semantics, by number.

    >>> titles("- **S36 Fence.** `max(…)`: it grows.")
    {36: 'Fence'}
    """
    return {int(number): title.replace("`", "") for number, title in _RULE.findall(page)}


def head(docstring: str) -> list[int]:
    """Read the rules that a docstring of the contract suite begins with; none if it begins otherwise.

    >>> head("S13, S15: a repeat is no second job."), head("A repeat (S13) is no second job.")
    ([13, 15], [])
    """
    found = _HEAD.match(docstring)
    return [int(rule[1:]) for rule in found.group().split(", ")] if found else []


def mentioned(docstring: str) -> set[int]:
    """Read the rules that a docstring names anywhere, ranges included.

    >>> sorted(mentioned("Form (S3-S6) comes before the limits of S16.")), mentioned("S1-S66, as ever.")
    ([3, 4, 5, 6, 16], set())
    """
    spans = (range(int(first), int(last or first) + 1) for first, last in _MENTION.findall(docstring))
    return {rule for span in spans for rule in span if len(span) <= _LONGEST_RANGE}


def cases_in(folder: Path) -> Iterator[Case]:
    """Return every test function of a folder without importing it, except tests of this table."""
    for path in sorted(folder.rglob("test_*.py")):
        if path.name == "test_rules.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield Case(path.name, node.name, ast.get_docstring(node) or "")


def count_contract(folder: Path = CONTRACT) -> Counter[int]:
    """Count the contract tests of each rule."""
    return Counter(rule for case in cases_in(folder) for rule in head(case.docstring))


def count_others() -> Counter[int]:
    """Count the tests elsewhere that name each rule."""
    found = (case for folder in OTHERS for case in cases_in(folder))
    return Counter(rule for case in found for rule in mentioned(case.docstring))


def findings(page: str, folder: Path, left: Mapping[int, str]) -> Iterator[str]:
    """Return where the rules of a page, the tests of a folder and `LEFT` contradict each other."""
    rules, counts = titles(page), count_contract(folder)
    for rule, title in rules.items():
        if not counts[rule] and rule not in left:
            yield f"S{rule} {title} has no contract test, and nothing says what it waits for"
        if counts[rule] and rule in left:
            yield f"S{rule} {title} has {counts[rule]} contract tests and waits for nothing any more"
    yield from (f"S{rule} waits for something and is no rule" for rule in left if rule not in rules)
    for case in cases_in(folder):
        named = head(case.docstring)
        if not named:
            yield f"{case.file}: {case.name} names no rule"
        yield from (f"{case.file}: {case.name} names S{one}, no rule" for one in named if one not in rules)


def table() -> Iterator[str]:
    """Return a line per rule: number, title, contract tests, other tests, or what it waits for."""
    contract, others = count_contract(), count_others()
    yield f"{'rule':<5}{'title':<28}{'contract':>9}{'others':>8}  waits for"
    for rule, title in titles(SEMANTICS.read_text(encoding="utf-8")).items():
        row = f"S{rule:<4}{title:<28}{contract[rule]:>9}{others[rule]:>8}  {LEFT.get(rule, '')}"
        yield row.rstrip()
    yield f"{'all':<33}{sum(1 for _ in cases_in(CONTRACT)):>9}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
