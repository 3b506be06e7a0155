"""Who acts when a policy is changed, why, and until when. Asks no store."""

from __future__ import annotations

from datetime import datetime
from getpass import getuser

from fairlane.app.ambient import current
from fairlane.app.asked import moment_of, text_of
from fairlane.model.instants import Instant


def actor(who: str | None) -> str:
    """Name who acts: as given, else the task whose handler runs, else the user of this process."""
    if who:
        return text_of("who", who)
    around = current()
    if around is not None and around.job is not None:
        return f"task {around.job.task}"
    try:
        return getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return "unknown"


def reason_of(reason: str) -> str:
    """Demand a reason: whoever finds the change wants to know."""
    said = text_of("reason", reason)
    if not said.strip():
        message = "a reason is needed: others will want to know why"
        raise ValueError(message)
    return said


def instant_of(moment: datetime | None) -> Instant | None:
    """Turn an end that may be missing into an instant; naive ones are refused (S2)."""
    return moment_of("until", moment)
