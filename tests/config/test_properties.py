"""Whatever a file, an environment or a command line holds: it is read, or refused with a `ConfigError`."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane import ConfigError
from fairlane.app.config.configuration import Configuration
from fairlane.app.config.display import rows
from fairlane.app.config.environment import PREFIX
from fairlane.app.config.file import lines_of
from fairlane.app.config.keys import TREE, Key, NamedEntries, Node
from fairlane.app.settings import Settings, settings_of

WORDS = [
    "", "none", "5m", "-5s", "1e5s", "10KB", "1.5B", "${HOME}", "${", "open", "exponential", "bulk", "*",
    "a b", "warn", "minute", "9" * 400 + "d", "9" * 400 + "GB", "\ud800", "é", "never", "1", "timeout",
]  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(WORDS),
    st.integers(-3, 3),
    st.sampled_from([10**400, -(10**400), 2**63, 1e308, float("inf"), float("nan"), True, None, 0.5]),
)
NAMES = st.sampled_from(
    ["bulk", "default", "*", "a b", "kind", "delays", "limit", "weight", "timeout", "x.y", ""]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def tables(node: Node) -> st.SearchStrategy[Any]:
    """Return tables of the right shape with values of any kind."""
    if isinstance(node, Key):
        return VALUES
    if isinstance(node, NamedEntries):
        return st.dictionaries(NAMES, tables(node.entry), max_size=2)
    known = {name: tables(child) for name, child in node.items()}
    return st.fixed_dictionaries({}, optional=known) | VALUES


CODE = settings_of(url="oracle://here")


def check(config: Any, environ: dict[str, str]) -> None:
    """Read, and show what was read; or be refused in the one way that is allowed."""
    configuration = Configuration(CODE, config, environ)
    read = settings_or_error(configuration)
    if isinstance(read, ConfigError):
        assert str(read)
    else:
        assert all(row.source for row in rows(configuration))


def settings_or_error(configuration: Configuration) -> Settings | ConfigError:
    """Return what was read, or the error."""
    try:
        return configuration.settings
    except ConfigError as error:
        return error


@settings(max_examples=120, deadline=None)
@given(st.fixed_dictionaries({}, optional={name: tables(node) for name, node in TREE.items()}))
@example({"worker": {"lease": 10**400}})
@example({"payload": {"max_size": float("inf")}})
@example({"queues": {"b": {"rate": {"limit": 10**400}}}})
def test_any_table_is_read_or_refused(config: dict[str, Any]) -> None:
    """Never an error of another kind, however wild the values."""
    check(config, {"HOME": "/root"})


PARTS = st.sampled_from(
    ["WORKER", "QUEUES", "BULK", "LEASE", "LIMITS", "RUNNING", "APP", "URL", "TASKS", "", "_"]
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.lists(PARTS, max_size=4).map("__".join), st.sampled_from(WORDS) | st.text(), max_size=3
    )
)
def test_any_environment_is_read_or_refused(environ: dict[str, str]) -> None:
    """As for tables."""
    check({}, {PREFIX + name: text for name, text in environ.items()})


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=" \n[]=.\"'#ab{}\\", max_size=60))
def test_lines_are_looked_for_in_any_text(text: str) -> None:
    """Each is a line that there is."""
    assert all(1 <= line <= len(text.splitlines()) for line in lines_of(text).values())
