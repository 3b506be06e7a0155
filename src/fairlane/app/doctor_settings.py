"""Settings of the doctor: the table `[doctor]` of fairlane.toml. Checks nothing."""

from __future__ import annotations

from typing import Final

import msgspec

MEGABYTE: Final = 2**20


class DoctorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """From when on the doctor reports a queue, the memory of a server, too few workers or clients.

    None, or a minimum of 0, is no threshold.
    """

    max_ready: int | None = 1_000
    max_memory: int | None = 500 * MEGABYTE
    min_workers: int = 1
    min_clients: int = 1
