"""The SQL of the table `fairlane_outbox` in the application's own database.

Plain SQL for SQLite and PostgreSQL, with the parameter style of any database library. Imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from fairlane.model.checking import one_of

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
"""Creates the table if it is missing. `seq` is the order, `created_at` is in microseconds since 1970."""


def check_style(paramstyle: object) -> None:
    """Refuse a style that PEP 249 does not know."""
    one_of("paramstyle", paramstyle, *get_args(ParamStyle))


def marks(style: ParamStyle, names: Iterable[str]) -> list[str]:
    """Return the placeholder of each parameter.

    >>> marks("named", ["id", "tenant"]), marks("numeric_dollar", ["id", "tenant"])
    ([':id', ':tenant'], ['$1', '$2'])
    """
    return [_MARKS[style].format(number=number, name=name) for number, name in enumerate(names, 1)]


def bound(style: ParamStyle, values: Mapping[str, Any]) -> Bound:
    """Return the values as the style takes them: by name or by position.

    >>> bound("qmark", {"id": 1}), bound("pyformat", {"id": 1})
    ((1,), {'id': 1})
    """
    return dict(values) if style in {"named", "pyformat"} else tuple(values.values())


def insert(style: ParamStyle, columns: Sequence[str]) -> str:
    """Return the statement that adds a row."""
    names, values = ", ".join(columns), ", ".join(marks(style, columns))
    return f"INSERT INTO fairlane_outbox ({names}) VALUES ({values})"  # noqa: S608 (our own names)


def select(style: ParamStyle, without: Sequence[str], limit: int) -> str:
    """Return the statement that reads the first rows, without those of the tenants in these parameters."""
    others = f" AND tenant NOT IN ({', '.join(marks(style, without))})" if without else ""
    return (
        "SELECT id, tenant, format, job FROM fairlane_outbox "  # noqa: S608 (marks and a number)
        f"WHERE problem IS NULL{others} ORDER BY seq LIMIT {limit}"
    )


def delete(style: ParamStyle) -> str:
    """Return the statement that deletes one row.

    By id, not by `seq`: a database may reuse a number, and a slow relay must not delete the newer row.
    """
    (id,) = marks(style, ["id"])
    return f"DELETE FROM fairlane_outbox WHERE id = {id}"  # noqa: S608 (a mark)


def set_aside(style: ParamStyle) -> str:
    """Return the statement that records why one row cannot be stored."""
    problem, id = marks(style, ["problem", "id"])
    return f"UPDATE fairlane_outbox SET problem = {problem} WHERE id = {id}"  # noqa: S608 (marks)
