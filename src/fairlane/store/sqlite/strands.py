"""One turn, one strand, and why either is parked, as they are stored: rows in, rows out. Decides nothing."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.layers import Kind, Subject


class Parked(msgspec.Struct, frozen=True):
    """Why something left the ready index, when time alone ends that, and whose turn it was by then."""

    reason: str
    subject: Subject
    until: Instant | None
    vt: int = 0
    ready_since: int = 0

    def text(self) -> str:
        """Give the form that is stored; names have no spaces."""
        return f"{self.reason} {self.subject.kind.value} {self.subject.name}"


_NOT_PARKED: Final = (None, None, 0, 0)


def _read_parked(text: str | None, until: Instant | None, vt: int, ready_since: int) -> Parked | None:
    if text is None:
        return None
    reason, kind, name = text.split(" ", 2)
    return Parked(reason, Subject(Kind(kind), name), until, vt, ready_since)


def _parked_values(parked: Parked) -> tuple[Any, ...]:
    return parked.until, parked.vt, parked.ready_since


class Turn:
    """One tenant of one queue: its clock and its counts. `strands` are those of it that are known."""

    __slots__ = (
        "arrival", "delayed", "id", "is_changed", "is_new", "is_ready", "open_strands", "pace",
        "parked", "queue", "ready", "ready_since", "running", "stored", "strands", "tenant", "vt",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...], *, is_new: bool = False) -> None:
        """Read a row."""
        (
            self.id, self.queue, self.tenant, self.vt, self.ready_since, self.is_ready, self.open_strands,
            self.delayed, self.ready, self.running, self.arrival, self.pace, parked, until, vt, since,
        ) = row  # fmt: skip
        self.parked = _read_parked(parked, until, vt, since)
        self.is_new = is_new
        self.is_changed = is_new
        self.stored = row[3:]  # in the order of `values`
        self.strands: dict[int, Strand] = {}

    def values(self) -> tuple[Any, ...]:
        """Give what may have changed."""
        return (
            self.vt, self.ready_since, self.is_ready, self.open_strands, self.delayed, self.ready,
            self.running, self.arrival, self.pace,
            *(_NOT_PARKED if self.parked is None else (self.parked.text(), *_parked_values(self.parked))),
        )  # fmt: skip


class Strand:
    """One task of one turn: how many jobs it has, which goes first, whether it is parked."""

    __slots__ = (
        "head",
        "id",
        "is_changed",
        "is_head_stale",
        "is_new",
        "jobs",
        "parked",
        "ready",
        "stored",
        "task",
        "turn",
    )

    def __init__(self, row: tuple[Any, ...], turn: Turn, *, is_new: bool = False) -> None:
        """Read a row; its turn is known."""
        self.id, _, _, self.task, self.jobs, self.ready, key, id_, parked, _, until, vt, since = row
        self.turn = turn
        self.head: tuple[int, bytes] | None = None if key is None else (key, id_)
        self.parked = _read_parked(parked, until, vt, since)
        self.is_new = is_new
        self.is_changed = is_new
        self.is_head_stale = False
        self.stored = row[4:]  # in the order of `values`

    @property
    def is_open(self) -> bool:
        """Whether a claim may look at it."""
        return self.ready > 0 and self.parked is None

    def values(self) -> tuple[Any, ...]:
        """Give what may have changed."""
        key, id = self.head or (None, None)
        if self.parked is None:
            return (self.jobs, self.ready, key, id, None, *_NOT_PARKED)
        gate = self.parked.subject.name if self.parked.reason == "gate" else None
        return (self.jobs, self.ready, key, id, self.parked.text(), gate, *_parked_values(self.parked))
