"""Load the statements of this store: one file per verb or subject, named parts inside.

A part begins with `-- name: words` and ends where the next begins. `{delayed}`, `{ready}` … and `{HOT}` stand
for the states of the model, so that no statement spells one, and `{body}`, `{status}` for the columns that
`rows.py` reads.
"""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace

from fairlane.model.lifecycle import State
from fairlane.store.sqlite.rows import BODY_COLUMNS, LIVE_COLUMNS, STATUS_COLUMNS

_MARK = "-- name: "


def load(name: str) -> SimpleNamespace:
    """Give the named parts of one file as attributes."""
    text = (files("fairlane.store.sqlite") / "sql" / f"{name}.sql").read_text("utf-8")
    _, *parts = text.split(_MARK)
    return SimpleNamespace(**dict(_part(part) for part in parts))


def _part(part: str) -> tuple[str, str]:
    title, _, body = part.partition("\n")
    for mark, value in _VALUES.items():
        body = body.replace(mark, value)
    return title.strip(), body.strip().rstrip(";")


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


_VALUES = {
    **{f"{{{state.value}}}": f"'{state.value}'" for state in State},
    "{body}": _columns("body", BODY_COLUMNS),
    "{live}": _columns("live", LIVE_COLUMNS),
    "{history}": _columns("history", STATUS_COLUMNS),
    "{dead}": _columns("dead", STATUS_COLUMNS),
}
