"""Load the statements and functions of this store, with its schema and the model's states written in.

A file of statements has named parts: each begins with `-- name: words` and ends where the next begins. `{s}`
stands for the installation's schema, quoted; `{delayed}`, `{ready}` … for the model's states as literals, so
that no statement spells one and no bound parameter hides a partial index from the planner; `{sent}`,
`{status}`, `{claim}`, `{end}`, `{hot}`, `{finished}` for the lists of columns that `rows.py` reads; `{whole}`
for all of them, which `{whole_hot}` fills from `job` and `{whole_finished}` from `history` and `dead`;
`{counted}` for those that filters and counts look at; `{priority_step}` and `{attempts_kept}` for the model's
numbers, `{due_most}`, `{park_most}`, `{wake_most}` for the bounds of one claim.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import SimpleNamespace
from typing import Final

from fairlane.model.job import ATTEMPTS_KEPT
from fairlane.model.lifecycle import State
from fairlane.model.priority import STEP
from fairlane.store.contract.claims import DUE_MOST, PARK_MOST, WAKE_MOST
from fairlane.store.postgres.rows import (
    CLAIM_COLUMNS,
    COUNTED_COLUMNS,
    END_COLUMNS,
    FINISHED_COLUMNS,
    HOT_COLUMNS,
    SENT_COLUMNS,
    STATUS_COLUMNS,
    WHOLE_COLUMNS,
)

_MARK: Final = "-- name: "
_HOME: Final[Traversable] = files("fairlane.store.postgres")
_VALUES: Final = {
    **{f"{{{state.value}}}": f"'{state.value}'" for state in State},
    "{sent}": ", ".join(SENT_COLUMNS),
    "{status}": ", ".join(STATUS_COLUMNS),
    "{claim}": ", ".join(CLAIM_COLUMNS),
    "{end}": ", ".join(END_COLUMNS),
    "{hot}": ", ".join(HOT_COLUMNS),
    "{finished}": ", ".join(FINISHED_COLUMNS),
    "{priority_step}": f"{STEP}::bigint",
    "{attempts_kept}": str(ATTEMPTS_KEPT),
    "{whole}": ", ".join(WHOLE_COLUMNS),
    "{whole_hot}": ", ".join(HOT_COLUMNS) + ", NULL::bigint AS settled_at, NULL::bytea AS result",
    "{whole_finished}": ", ".join((*SENT_COLUMNS, *STATUS_COLUMNS))
    + ", NULL::text AS worker, NULL::bigint AS started_at, NULL::bigint AS lease_until,"
    + " false AS is_cancel_asked, NULL::bytea AS progress, settled_at, result",
    "{counted}": ", ".join(COUNTED_COLUMNS),
    "{due_most}": str(DUE_MOST),
    "{park_most}": str(PARK_MOST),
    "{wake_most}": str(WAKE_MOST),
}


def quoted(name: str) -> str:
    """Give a name as an identifier of SQL.

    >>> quoted('odd"name')
    '"odd""name"'
    """
    return '"' + name.replace('"', '""') + '"'


def rendered(text: str, schema: str) -> str:
    """Write a schema and the model's words into a text."""
    for mark, value in _VALUES.items():
        text = text.replace(mark, value)
    return text.replace("{s}", quoted(schema))


@cache
def load(name: str, schema: str) -> SimpleNamespace:
    """Give the named parts of `sql/NAME.sql` as attributes."""
    text = rendered((_HOME / "sql" / f"{name}.sql").read_text("utf-8"), schema)
    _, *parts = text.split(_MARK)
    return SimpleNamespace(**dict(_part(part) for part in parts))


def _part(part: str) -> tuple[str, str]:
    title, _, body = part.partition("\n")
    return title.strip(), body.strip().rstrip(";")


def texts(folder: str) -> tuple[tuple[str, str], ...]:
    """Give name and text of every file in `migrations` or `functions`, in order, not yet rendered."""
    found = sorted(entry.name for entry in (_HOME / folder).iterdir() if entry.name.endswith(".sql"))
    return tuple((name.removesuffix(".sql"), (_HOME / folder / name).read_text("utf-8")) for name in found)
