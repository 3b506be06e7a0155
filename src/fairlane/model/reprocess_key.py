"""The idempotency key of a job that runs in place of a dead one (S75). Knows no store and no clock."""

from __future__ import annotations

import re
from string import Formatter
from typing import Final
from uuid import UUID

from fairlane.model.instants import SECOND, Instant
from fairlane.model.names import label_hint

_PARTS: Final = {
    "key": r"(?P<key>.+)",
    "n": r"(?P<n>[0-9]{1,9})",
    "time": r"[0-9]+\.[0-9]+",
    "id": r"[0-9a-f-]{36}",
}


def reprocess_key(template: str, old: str, new: UUID, now: Instant) -> str | None:
    """Return the key of a new job, by a template that was checked; None if it has its own id as key.

    A key that was made by the same template counts on, if the template counts. A key that would be too long
    is not used.

    >>> reprocess_key("{key}#r{n}", "order-7", UUID(int=1), 0)
    'order-7#r1'
    >>> reprocess_key("{key}#r{n}", "order-7#r1", UUID(int=1), 0)
    'order-7#r2'
    >>> reprocess_key("{key}_retry_{time}", "order-7", UUID(int=1), 1_500_000)
    'order-7_retry_1.500000'
    """
    base, count = _counted(template, old)
    time = f"{now // SECOND}.{now % SECOND:06}"
    key = template.format(key=base, n=count, time=time, id=new)
    return None if key == str(new) or label_hint(key) is not None else key


def _counted(template: str, old: str) -> tuple[str, int]:
    """Return the key to begin with, and the number of this run: 1 unless the old key has a number."""
    parts = list(Formatter().parse(template))
    names = [name for _, name, _, _ in parts if name is not None]
    if names.count("key") != 1 or names.count("n") != 1:
        return old, 1
    pattern = "".join(re.escape(text) + ("" if name is None else _PARTS[name]) for text, name, _, _ in parts)
    found = re.fullmatch(pattern, old)
    return (old, 1) if found is None else (found["key"], int(found["n"]) + 1)
