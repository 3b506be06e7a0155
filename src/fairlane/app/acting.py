"""Who acts when a policy is changed, why, and until when. Asks no store."""

from __future__ import annotations

from datetime import datetime
from getpass import getuser

from fairlane.app.ambient import current
from fairlane.model.instants import Instant, to_instant


def actor(who: str | None) -> str:
    """Name who acts: as given, else the task whose handler runs, else the user of this process."""
    if who:
        return who
    around = current()
    if around is not None and around.job is not None:
        return f"task {around.job.task}"
    try:
        return getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return "unknown"


def reason_of(reason: str) -> str:
    """Demand a reason: whoever finds the change wants to know."""
    if not reason.strip():
        message = "a reason is needed: others will want to know why"
        raise ValueError(message)
    return reason


def instant_of(moment: datetime | None) -> Instant | None:
    """Turn an end that may be missing into an instant; naive ones are refused (S2)."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance] (callers need not be typed)
        message = f"until has a value of type {type(moment).__name__}; give a datetime with a time zone"
        raise ValueError(message)  # noqa: TRY004 (a bad value like any other)
    return to_instant(moment)
