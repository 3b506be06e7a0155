"""Settings of the journals and of dead letters: three tables of fairlane.toml. Checks nothing."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import DAY, Micros


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[audit]`: the key of the seals, and how long entries are stored (S60).

    Without a key the seals are checksums. The key is never shown and never stored.
    """

    key: bytes | None = None
    keep: Micros = 365 * DAY

    def __repr__(self) -> str:
        """Show no key."""
        return f"<AuditSettings {'with' if self.key else 'without'} a key>"


class EventSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[events]`: how long events are stored, and how many (S76)."""

    keep: Micros = 7 * DAY
    most: int = 10_000


class DeadLetterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[dead_letters]`: when operators are alerted, and the key of a job that runs again (S75).

    More than `alert_above` pending dead letters make one event; None: never. `key` is a template of `{key}`,
    the old job's, `{n}`, which counts from 1, `{time}` and `{id}`, the new job's.
    """

    alert_above: int | None = 50
    key: str = "{key}#r{n}"
