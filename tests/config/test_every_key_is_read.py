"""No key without effect: what each key sets is read somewhere outside the configuration."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairlane.app.config.keys import all_keys
from fairlane.app.schedules.options import WORDS

PACKAGE = Path(__file__).parents[2] / "src" / "fairlane"
WRITERS = (
    "app/config/",
    "app/settings.py",
    "app/archive_settings.py",
    "app/worker_settings.py",
    "app/journal_settings.py",
    "app/web_settings.py",
    "app/admin/views.py",
    "app/admin/budgets.py",
    "app/admin/gates.py",
    "lab/",  # its `settings` are those of a benchmark
)
"""Files that read, fill or show settings: a key that only these know has no effect."""

READERS: Mapping[str, frozenset[str]] = {
    "app": frozenset({"settings"}),
    "defaults": frozenset({"queue"}),
    "queues": frozenset({"queue"}),
    "lanes": frozenset({"lane", "policy"}),
    "gates": frozenset({"gate"}),
    "breakers": frozenset({"one", "breaker"}),
    "budgets": frozenset({"budget"}),
    "tasks": frozenset({"task", "declared", "declaration"}),
    "tenants": frozenset({"rules", "tenant", "own"}),
    "limits": frozenset({"limits"}),
    "worker": frozenset({"settings", "_settings", "worker"}),
    "payload": frozenset({"rules", "settings"}),
    "errors": frozenset({"self"}),
    "retention": frozenset({"retention", "_retention", "keep", "self"}),
    "archive": frozenset({"settings", "_settings"}),
    "dead_letters": frozenset({"dead_letters"}),
    "events": frozenset({"events"}),
    "audit": frozenset({"audit"}),
    "web": frozenset({"settings", "web"}),
    "doctor": frozenset({"thresholds"}),
}
"""By table: the names of variables that hold its values where they are used."""

ATTRIBUTES: Mapping[str, str] = {
    "app.import": "import_",
    "app.priority": "is_lower_first",
    "payload.categories.CATEGORY": "categories",
    "lanes.LANE.headroom": "headroom_slots",
    "retention.dead_unreviewed": "dead",
    "retention.dead_from": "is_from_review",
    "retention.idempotency_keys": "keys",
    "retention.attempts_per_job": "attempts",
    "retention.tasks.TASK": "tasks",
    "retention.tenants.TENANT": "tenants",
    "retention.queues.QUEUE": "queues",
}
"""Where the attribute has another name than the key."""


def attributes_read(source: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the variable or function before the dot, attribute) for each attribute that is read."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in WORDS:
            yield "said", node.value
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        owner = node.value.func if isinstance(node.value, ast.Call) else node.value
        if isinstance(owner, ast.Name):
            yield owner.id, node.attr
        elif isinstance(owner, ast.Attribute):
            yield owner.attr, node.attr


def is_read(key: str, reads: set[tuple[str, str]]) -> bool:
    """Whether the attribute that a key sets is read from a value of its table."""
    *path, name = key.split(".")
    if path[0] == "schedules":  # its values are read by their words
        return ("said", name) in reads
    table = "limits" if "limits" in path else path[0]
    attribute = ATTRIBUTES.get(key, name)
    return any((owner, attribute) in reads for owner in READERS[table])


@pytest.fixture(scope="module")
def reads() -> set[tuple[str, str]]:
    """Every attribute that the package reads outside of the configuration."""
    files = [path for path in PACKAGE.rglob("*.py") if not _is_writer(path)]
    return {read for path in files for read in attributes_read(path.read_text(encoding="utf-8"))}


def _is_writer(path: Path) -> bool:
    return path.relative_to(PACKAGE).as_posix().startswith(WRITERS)


def test_every_key_sets_something_that_is_read(reads: set[tuple[str, str]]) -> None:
    """A setting that nothing reads promises what nobody keeps."""
    assert [name for name, _ in all_keys() if not is_read(name, reads)] == []


@pytest.mark.parametrize(
    "key",
    ["worker.poll", "queues.QUEUE.sla", "lanes.LANE.poll", "tasks.TASK.colour", "app.namespace"],
)
def test_a_key_that_nothing_reads_is_found(reads: set[tuple[str, str]], key: str) -> None:
    """These were accepted and ignored once."""
    assert not is_read(key, reads)


def test_only_what_is_read_from_the_right_value_counts() -> None:
    """Not an assignment, not a keyword, not an attribute of something else of that name."""
    source = "lane.poll = 5\nRelay(poll=5)\nrelay.poll\nself.lane.slots\nsettings.queue('a').timeout\n"
    assert set(attributes_read(source)) == {
        ("relay", "poll"),
        ("lane", "slots"),
        ("self", "lane"),
        ("queue", "timeout"),
        ("settings", "queue"),
    }
