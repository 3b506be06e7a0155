"""The table `fairlane_outbox` in the application's own database: how it is made, written and read.

Plain SQL for SQLite and PostgreSQL, spelled for whatever library the application has. Imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

ParamStyle: TypeAlias = Literal["qmark", "numeric", "numeric_dollar", "named", "format", "pyformat"]
"""How a library marks parameters: `?`, `:1`, `$1`, `:name`, `%s`, `%(name)s` (PEP 249)."""

Dialect: TypeAlias = Literal["sqlite", "postgresql"]
Bound: TypeAlias = dict[str, Any] | tuple[Any, ...]

_MARKS: Final[dict[ParamStyle, str]] = {
    "qmark": "?",
    "numeric": ":{number}",
    "numeric_dollar": "${number}",
    "named": ":{name}",
    "format": "%s",
    "pyformat": "%({name})s",
}

_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS fairlane_outbox (
  seq        {number},
  id         TEXT NOT NULL UNIQUE,
  tenant     TEXT NOT NULL,
  format     INTEGER NOT NULL,
  job        {bytes} NOT NULL,
  created_at BIGINT NOT NULL,
  problem    TEXT
)"""

DDL: Final[dict[Dialect, str]] = {
    "sqlite": _TABLE.format(number="INTEGER PRIMARY KEY", bytes="BLOB"),
    "postgresql": _TABLE.format(number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", bytes="BYTEA"),
}
"""Makes the table, if it is not there. `seq` is the order, `created_at` whole microseconds since 1970."""


def marks(style: ParamStyle, names: Iterable[str]) -> list[str]:
    """Give the mark of each parameter.

    >>> marks("named", ["id", "tenant"]), marks("numeric_dollar", ["id", "tenant"])
    ([':id', ':tenant'], ['$1', '$2'])
    """
    return [_MARKS[style].format(number=number, name=name) for number, name in enumerate(names, 1)]


def bound(style: ParamStyle, values: Mapping[str, Any]) -> Bound:
    """Give the values as the style wants them: by name or by position.

    >>> bound("qmark", {"id": 1}), bound("pyformat", {"id": 1})
    ((1,), {'id': 1})
    """
    return dict(values) if style in {"named", "pyformat"} else tuple(values.values())


def insert(style: ParamStyle, columns: Sequence[str]) -> str:
    """Spell the statement that adds a row."""
    names, values = ", ".join(columns), ", ".join(marks(style, columns))
    return f"INSERT INTO fairlane_outbox ({names}) VALUES ({values})"  # noqa: S608 (our own names)


def select(style: ParamStyle, without: Sequence[str], most: int) -> str:
    """Spell the statement that reads the first rows of all tenants but these parameters' values."""
    others = f" AND tenant NOT IN ({', '.join(marks(style, without))})" if without else ""
    return (
        "SELECT id, tenant, format, job FROM fairlane_outbox "  # noqa: S608 (marks and a number)
        f"WHERE problem IS NULL{others} ORDER BY seq LIMIT {most}"
    )


def delete(style: ParamStyle) -> str:
    """Spell the statement that removes one row.

    By id: a number in `seq` may be given again once its row is gone, and a slow relay must not hit that one.
    """
    (id,) = marks(style, ["id"])
    return f"DELETE FROM fairlane_outbox WHERE id = {id}"  # noqa: S608 (a mark)


def set_aside(style: ParamStyle) -> str:
    """Spell the statement that notes why one row cannot be stored."""
    problem, id = marks(style, ["problem", "id"])
    return f"UPDATE fairlane_outbox SET problem = {problem} WHERE id = {id}"  # noqa: S608 (marks)
