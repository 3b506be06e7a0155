"""A pytest plugin that records, one line of JSON each, how tests ended and with which errors.

Loaded by name in the scratch copy; knows no patch. Tests of stores that are not wanted are left out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

CRIPPLED: Final = (SyntaxError, ImportError, NameError, AttributeError, TypeError)


class RecordedTest(msgspec.Struct, frozen=True):
    """One run of one test: its id without parameters, its store if it has one, its errors if it is red.

    `is_crippled` if one of them comes from source that does not even run: that shows a bad patch.
    """

    test: str
    store: str
    errors: tuple[str, ...] = ()
    is_crippled: bool = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: the file to write, the known stores, and the wanted ones."""
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
    """Record every end of a test, and every failure around it: a fixture may check too."""
    report = yield
    if report.when == "call" or report.failed:
        errors = list(_leaves(call.excinfo.value)) if report.failed and call.excinfo is not None else []
        names = tuple(type(error).__name__ for error in errors)
        is_crippled = any(isinstance(error, CRIPPLED) for error in errors)
        seen = RecordedTest(item.nodeid.partition("[")[0], _store(item), names, is_crippled)
        with item.config.getoption("--witness").open("ab") as file:
            file.write(msgspec.json.encode(seen) + b"\n")
    return report


def _store(item: pytest.Item) -> str:
    """Return the store that a test runs on, from its parameters; an empty text if there is none."""
    spec = getattr(item, "callspec", None)
    known = set(item.config.getoption("--stores").split(","))
    values = () if spec is None else spec.params.values()
    return next((value for value in values if isinstance(value, str) and value in known), "")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Return the exceptions inside any groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
