"""A plugin for pytest that writes down, one line of JSON each, how tests ended and by which errors.

Loaded by name in the scratch copy; knows no patch. Tests of other stores than those asked for are left out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest


class Seen(msgspec.Struct, frozen=True):
    """One run of one test: its id without parameters, its store if it has one, its error if it is red."""

    test: str
    store: str
    errors: tuple[str, ...]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where to write, and which stores count: those wanted, of those there are."""
    parser.addoption("--witness", type=Path)
    parser.addoption("--stores", default="")
    parser.addoption("--wanted", default="")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of stores that are not wanted."""
    wanted = {"", *config.getoption("--wanted").split(",")}
    items[:] = [item for item in items if _store(item) in wanted]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note every end of a test, and every failure around it: a fixture may check as well."""
    report = yield
    if report.when == "call" or report.failed:
        errors = tuple(_names(call.excinfo.value)) if report.failed and call.excinfo is not None else ()
        seen = Seen(item.nodeid.partition("[")[0], _store(item), errors)
        with item.config.getoption("--witness").open("ab") as file:
            file.write(msgspec.json.encode(seen) + b"\n")
    return report


def _store(item: pytest.Item) -> str:
    """Name the store that a test runs on, from its parameters; nothing if it has none."""
    spec = getattr(item, "callspec", None)
    known = set(item.config.getoption("--stores").split(","))
    values = () if spec is None else spec.params.values()
    return next((value for value in values if isinstance(value, str) and value in known), "")


def _names(error: BaseException) -> Iterator[str]:
    """Name the classes of what was raised, inside groups too."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _names(inner)
    else:
        yield type(error).__name__
