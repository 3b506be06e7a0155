"""Log what was allowed but should be heard of: sizes, paths and counts, never values (S5, S6, S17)."""

from __future__ import annotations

from collections.abc import Sequence
from logging import INFO, WARNING, getLogger
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec

from fairlane.app.form import Formed
from fairlane.app.settings import Settings
from fairlane.store.contract.jobs import OverLimit

_PATHS_SHOWN: Final = 10

_log: Final = getLogger("fairlane")


def remark(formed: Sequence[Formed], settings: Settings) -> None:
    """Log, once a task, that payloads are large or look sensitive: sizes, paths and reasons, never values."""
    remarkable = [item for item in formed if item.is_large or item.findings]
    for task in dict.fromkeys(item.job.task for item in remarkable):
        items = [item for item in remarkable if item.job.task == task]
        large = [item.size for item in items if item.is_large]
        if large:
            _log.warning(
                "task %s: %d payload(s) over %d bytes, the largest %d; store large content elsewhere",
                *(task, len(large), settings.payload.warn_over, max(large)),
                extra={"event": "payload_large", "task": task, "count": len(large), "largest": max(large)},
            )
        found = sorted({f"{one.path} ({one.why})" for item in items for one in item.findings})
        if found:
            _log.warning(
                "task %s: arguments look sensitive: %s",
                *(task, ", ".join(found[:_PATHS_SHOWN])),
                extra={"event": "payload_sensitive", "task": task, "count": len(found)},
            )


def tell_default_place(url: str) -> None:
    """Log which file is the store because nobody has named one; that a new one is made is a warning."""
    path = Path(unquote(url.removeprefix("sqlite:///")))
    is_new = not path.exists()
    _log.log(
        WARNING if is_new else INFO,
        "no store is named, so %s %s; name one in Fairlane(...), FAIRLANE_URL or [app] url",
        *("a new one is made at" if is_new else "it is", path),
        extra={"event": "store_default", "file": str(path)},
    )


def tell_over_limit(over: Sequence[OverLimit]) -> None:
    """Log once a tenant and queue, with the highest count, what was stored above a limit (S17)."""
    highest = {(one.tenant, one.queue): one for one in sorted(over, key=lambda one: one.waiting)}
    for one in highest.values():
        _log.warning(
            "job_limit_warning: tenant %s has %d waiting jobs in queue %s, the limit is %d",
            *(one.tenant, one.waiting, one.queue, one.limit),
            extra={"event": "job_limit_warning", **msgspec.structs.asdict(one)},
        )
