"""The state of a circuit breaker: packed whole, and what claims read of one that is not closed."""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.guards.breaker import CLOSED, BreakerState
from fairlane.model.instants import LAST_INSTANT, Instant
from fairlane.store.breaker_changes import open_breakers, unpack_state
from fairlane.store.contract.breakers import BreakerKey, OpenBreakers

BREAKER_CONSTANTS: Final[dict[str, int | str]] = {"BREAKER_FORMAT": ">i8i8i4", "LAST_INSTANT": LAST_INSTANT}
"""Open until, half-opened at (-1: not yet), slots; the ids of the jobs with a permit follow."""

_HEAD: Final = struct.Struct(">qqi")
_ID_SIZE: Final = 16


def read_state(packed: bytes, opened: bytes) -> BreakerState:
    """Decode a state; claims have changed only what they read."""
    if not packed:
        return CLOSED
    state = unpack_state(packed)
    if not opened:
        return state
    _, half_opened_at, _ = _HEAD.unpack_from(opened)
    ids = range(_HEAD.size, len(opened), _ID_SIZE)
    permits = tuple(UUID(bytes=opened[at : at + _ID_SIZE]) for at in ids)
    half_opened = None if half_opened_at < 0 else half_opened_at
    return msgspec.structs.replace(state, half_opened_at=half_opened, permits=permits)


def read_open(named: list[bytes] | list[int], now: Instant) -> OpenBreakers | None:
    """Decode what a claim says of those that are not closed: fields and open parts, or only a number."""
    if not named:
        return None
    if isinstance(named[0], int):
        return OpenBreakers(now, is_cut=True)
    states: dict[BreakerKey, BreakerState] = {}
    for field, opened in zip(named[::2], named[1::2], strict=True):
        open_until, _, slots = _HEAD.unpack_from(opened)
        states[BreakerKey(*field.decode().split("\0"))] = BreakerState(slots=slots, open_until=open_until)
    return open_breakers(states, now)


def open_part(state: BreakerState) -> bytes:
    """Encode what claims read; empty for a closed breaker."""
    if state.slots is None:
        return b""
    half_opened_at = -1 if state.half_opened_at is None else state.half_opened_at
    permits = b"".join(job.bytes for job in state.permits)
    return _HEAD.pack(state.open_until, half_opened_at, state.slots) + permits
