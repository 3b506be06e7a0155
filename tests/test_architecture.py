"""Hold the tree to its shape, and show each check bad sources to which it must object."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from typing import Final

import pytest

from tools.architecture import (
    HOMES,
    PACKAGE,
    PURE_ENTRIES,
    PURE_EXCEPTIONS,
    ROOT,
    Source,
    all_findings,
    contract_verbs,
    entry_of,
    form_findings,
    homeless_findings,
    imports,
    layer_findings,
    length_findings,
    marked,
    purity_findings,
    sources,
    undocumented_findings,
    unsafe_findings,
)

# ── the tree ─────────────────────────────────────────────────────────────────


def test_each_layer_imports_only_layers_above_it() -> None:
    """The order of `LAYERS` is the order of knowing."""
    assert all_findings(layer_findings, PACKAGE) == ""


def test_the_model_reads_no_clock_draws_nothing_and_touches_nothing() -> None:
    """What the model decides follows from its arguments alone."""
    pure = [source for source in sources(PACKAGE) if entry_of(source.module) in PURE_ENTRIES]
    assert "\n".join(finding for source in pure for finding in purity_findings(source)) == ""


def test_dangerous_words_stand_in_one_module_each() -> None:
    """A grep for `sleep`, `create_task`, `utcnow` or `except Exception` returns at most one file."""
    assert all_findings(homeless_findings, PACKAGE) == ""


def test_every_home_is_still_needed() -> None:
    """A permission that nobody uses any more is withdrawn."""
    used = {(word, source.module) for source in sources(PACKAGE) for word, _ in marked(source.text)}
    assert {(word, module) for word, modules in HOMES.items() for module in modules} <= used
    imported = {
        (s.module, target.split(".")[0])
        for s in sources(PACKAGE)
        for _, target, _ in imports(ast.parse(s.text))
    }
    assert set(PURE_EXCEPTIONS) <= imported


def test_nothing_imports_pickle() -> None:
    """Reading a payload never runs code, in the tests neither."""
    assert all_findings(unsafe_findings, PACKAGE, ROOT / "tests", ROOT / "tools") == ""


def test_every_module_says_its_duty_and_has_a_telling_name() -> None:
    """A docstring in each module, and no `utils`."""
    assert all_findings(form_findings, PACKAGE, ROOT / "tests", ROOT / "tools") == ""


def test_only_verbs_of_the_contract_go_without_a_docstring() -> None:
    """A facet repeats nothing of what the contract says; whatever else it has, it explains."""
    verbs = contract_verbs()
    assert {"claim", "enqueue", "pause", "status"} <= verbs
    stores = [source for source in sources(PACKAGE) if source.module.startswith("fairlane.store.")]
    assert [found for source in stores for found in undocumented_findings(source, verbs)] == []
    facet = (
        "class SqliteJobs:\n    async def find(self): ...\n    def helper(self): ...\n    def _own(self): ..."
    )
    (found,) = undocumented_findings(Source("fairlane.store.sqlite.jobs.facet", facet), verbs)
    assert "SqliteJobs.helper" in found


def test_no_source_file_is_longer_than_a_reader_likes() -> None:
    """Python, SQL and Lua alike."""
    files = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in {".py", ".sql", ".lua"}]
    findings = [length_findings(path.name, path.read_text(encoding="utf-8")) for path in files]
    assert list(itertools.chain(*findings)) == []


def test_the_development_tools_are_pinned_and_name_no_index() -> None:
    """Each line of requirements/dev.txt is a name, a version and perhaps a marker."""
    lines = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*( ; .+)?", line)] == []


# ── the checks themselves ────────────────────────────────────────────────────

BAD: Final = [
    (layer_findings, "fairlane.model.retry.backoff", "import fairlane.store.contract.jobs", "not above it"),
    (layer_findings, "fairlane.model.retry.backoff", "from fairlane import Queue", "not above it"),
    (layer_findings, "fairlane.model.retry.backoff", "from fairlane import app", "not above it"),
    (
        layer_findings,
        "fairlane.store.contract.jobs",
        "from fairlane.store.opening import open",
        "not above it",
    ),
    (layer_findings, "fairlane.store.opening", "from fairlane.store import sqlite", "not above it"),
    (
        layer_findings,
        "fairlane.store.redis.jobs.facet",
        "import fairlane.store.sqlite.jobs.facet",
        "not above it",
    ),
    (layer_findings, "fairlane.worker.run", "def f():\n    from fairlane.cli.main import x", "not above it"),
    (layer_findings, "fairlane.app.client", "from . import tasks", "relative import"),
    (layer_findings, "fairlane.app.client", "from ..model.names import name_hint", "relative import"),
    (layer_findings, "fairlane.plugins", "", "is in no layer"),
    (layer_findings, "fairlane.store.mysql.jobs", "", "is in no layer"),
    (layer_findings, "fairlane.cli.main", "import fairlane.plugins.x", "in no layer"),
    (purity_findings, "fairlane.model.retry.backoff", "import time", "imports time"),
    (purity_findings, "fairlane.model.retry.backoff", "import os.path", "imports os"),
    (purity_findings, "fairlane.model.retry.backoff", "import asyncio", "imports asyncio"),
    (purity_findings, "fairlane.model.retry.backoff", "from threading import Lock", "imports threading"),
    (purity_findings, "fairlane.model.retry.backoff", "import traceback", "imports traceback"),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from datetime import datetime\nx = datetime.now()",
        "datetime.now",
    ),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "import datetime as d\nx = d.datetime.utcnow()",
        "datetime.utcnow",
    ),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from datetime import date as day\nx = day.today",
        "date.today",
    ),
    (purity_findings, "fairlane.model.retry.backoff", "import random\nx = random.random()", "random.random"),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from random import uniform\nx = uniform(0, 1)",
        "random.uniform",
    ),
    (purity_findings, "fairlane.model.retry.backoff", "import uuid\nx = uuid.uuid4()", "uuid.uuid4"),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from pathlib import Path\nx = Path('a')",
        "pathlib.Path",
    ),
    (purity_findings, "fairlane.model.retry.backoff", "def f(p):\n    return open(p).read()", "names open"),
    (homeless_findings, "fairlane.worker.run", "import asyncio\nawait asyncio.sleep(1)", "sleep belongs"),
    (homeless_findings, "fairlane.worker.run", "group.create_task(run())", "create_task belongs"),
    (homeless_findings, "fairlane.worker.run", "now = datetime.utcnow()", "utcnow belongs"),
    (
        homeless_findings,
        "fairlane.worker.round_trip",
        "try:\n    x\nexcept Exception:\n    y",
        "except Exception belongs",
    ),
    (
        homeless_findings,
        "fairlane.worker.round_trip",
        "try:\n    x\nexcept (OSError, BaseException):\n    y",
        "except",
    ),
    (
        homeless_findings,
        "fairlane.worker.round_trip",
        "try:\n    x\nexcept:\n    y",
        "except Exception belongs",
    ),
    (unsafe_findings, "tests.model.test_x", "import pickle", "never pickles"),
    (unsafe_findings, "fairlane.app.client", "def f():\n    from pickle import loads", "never pickles"),
    (form_findings, "fairlane.app.client", "x = 1", "has no docstring"),
    (form_findings, "fairlane.app", "", "has no docstring"),
    (form_findings, "fairlane.app.utils", '"""Do."""', "named after nothing"),
]

GOOD: Final = [
    (layer_findings, "fairlane.model.retry.backoff", "from fairlane.model.failure import ErrorClass"),
    (layer_findings, "fairlane.store.contract.jobs", "from fairlane.model import scope"),
    (layer_findings, "fairlane.store.sqlite.jobs.facet", "from fairlane.store.opening import x\nimport apsw"),
    (layer_findings, "fairlane", "from fairlane.app.client import Fairlane\nimport fairlane.model.errors"),
    (layer_findings, "fairlane.testing", "from fairlane import Fairlane\nimport fairlane.cli.main"),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from datetime import UTC, datetime\nx = datetime(1970, 1, 1)",
    ),
    (
        purity_findings,
        "fairlane.model.retry.backoff",
        "from random import Random\ndef f(rng: Random, now: int): ...",
    ),
    (purity_findings, "fairlane.model.retry.backoff", "from pathlib import PurePath\nx = PurePath('a')"),
    (purity_findings, "fairlane.model.retry.backoff", "def f(gate):\n    return gate.open"),
    (purity_findings, "fairlane.model.failure", "import traceback"),
    (homeless_findings, "fairlane.worker.run", '"""Does not sleep."""\n# never create_task here'),
    (homeless_findings, "fairlane.worker.round_trip", "try:\n    x\nexcept OSError:\n    y"),
    (
        homeless_findings,
        "fairlane.worker.round_trip",
        "try:\n    x\nexcept Exception as e:\n    raise Y from e",
    ),
    (homeless_findings, "fairlane.model.failure", "try:\n    x\nexcept Exception:\n    y"),
    (unsafe_findings, "fairlane.app.client", '"""Never pickle."""'),
    (form_findings, "fairlane.app.client", '"""Do one thing."""'),
    (form_findings, "tests.model", ""),
]


@pytest.mark.parametrize(("check", "module", "text", "complaint"), BAD)
def test_a_bad_source_is_found(
    check: Callable[[Source], list[str]], module: str, text: str, complaint: str
) -> None:
    """Each check can fail."""
    assert complaint in "\n".join(check(Source(module, text)))


@pytest.mark.parametrize(("check", "module", "text"), GOOD)
def test_a_good_source_is_left_alone(check: Callable[[Source], list[str]], module: str, text: str) -> None:
    """No check objects to what the house does."""
    assert check(Source(module, text)) == []


def test_a_file_of_four_hundred_lines_is_the_longest() -> None:
    """The limit itself is allowed."""
    assert length_findings("x.sql", "\n" * 400) == []
    assert length_findings("x.sql", "\n" * 401) == ["x.sql: 401 lines; which second noun moved in?"]
