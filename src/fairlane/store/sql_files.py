"""Split a file of SQL into its named statements. Knows no database."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Final

_MARK: Final = "-- name: "


def named_statements(text: str, values: Mapping[str, str]) -> SimpleNamespace:
    r"""Return the statements of a file as attributes, with placeholders replaced.

    A statement begins after a line `-- name: words` and ends where the next begins; what stands before the
    first is the file's own comment. `values` maps each placeholder, braces included, to its text.

    >>> named_statements("-- Jobs.\n-- name: ready\nSELECT {state};\n", {"{state}": "'ready'"}).ready
    "SELECT 'ready'"
    """
    for mark, value in values.items():
        text = text.replace(mark, value)
    _, *parts = text.split(_MARK)
    return SimpleNamespace(**dict(_named(part) for part in parts))


def _named(part: str) -> tuple[str, str]:
    title, _, body = part.partition("\n")
    return title.strip(), body.strip().rstrip(";")
