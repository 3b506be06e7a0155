"""Load this store's SQL: one file per verb or table, named statements inside.

`{delayed}`, `{ready}` … in a statement stand for the states of the model, `{body}`, `{insert_body}` … for the
lists of columns in `columns.SQL`. They are replaced once, at import.
"""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace
from typing import Final

from fairlane.model.lifecycle.states import State
from fairlane.store.sql_files import named_statements
from fairlane.store.sqlite.tables.columns import SQL

VALUES: Final = {**{f"{{{state.value}}}": f"'{state.value}'" for state in State}, **SQL}
"""Placeholders and what they stand for."""


def load(name: str) -> SimpleNamespace:
    """Return the statements of one file as attributes."""
    text = (files("fairlane.store.sqlite") / "sql" / f"{name}.sql").read_text("utf-8")
    return named_statements(text, VALUES)
