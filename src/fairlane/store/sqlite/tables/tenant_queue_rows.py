"""The rows of `tenant_queue` and `strand` as objects, and a cache of them. Runs no statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import Subject, SubjectKind

K = TypeVar("K")
V = TypeVar("V")

MAX_CACHED_ROWS: Final = 25_000
"""How many rows one cache holds before it is emptied."""


BlockReason: TypeAlias = Literal["paused", "running_limit", "rate", "gate", "breaker", "budget"]


class Block(msgspec.Struct, frozen=True):
    """Why no job may start, and when time alone ends that.

    `vt` and `ready_since`: the place in the fair order of what was parked for this.
    """

    reason: BlockReason
    subject: Subject
    until: Instant | None
    vt: int = 0
    ready_since: int = 0

    def line(self) -> str | None:
        """Return in whose line it waits: the name of a gate, or a breaker as `explain` names it."""
        if self.reason == "breaker":
            return str(self.subject)
        return self.subject.name if self.reason == "gate" else None

    def text(self) -> str:
        """Return the stored form; reasons and kinds have no spaces."""
        return f"{self.reason} {self.subject.kind.value} {self.subject.name}"


_NOT_PARKED: Final = (None, None, 0, 0)


def _read_parked(text: str | None, until: Instant | None, vt: int, ready_since: int) -> Block | None:
    if text is None:
        return None
    reason, kind, name = text.split(" ", 2)
    return Block(reason, Subject(SubjectKind(kind), name), until, vt, ready_since)  # type: ignore[arg-type]


def _parked_values(parked: Block) -> tuple[Any, ...]:
    return parked.until, parked.vt, parked.ready_since


class TenantQueue:
    """One tenant in one queue: its clock and its counts. `strands` has those that were read."""

    __slots__ = (
        "delayed", "id", "is_changed", "is_new", "is_ready", "next_allowed_at", "open_strands", "parked",
        "queue", "rate_id", "ready", "ready_since", "running", "stored", "strands", "tenant", "vt",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...], *, is_new: bool = False) -> None:
        """Read a row with `TENANT_QUEUE_COLUMNS`."""
        (
            self.id, self.queue, self.tenant, self.vt, self.ready_since, self.is_ready, self.open_strands,
            self.delayed, self.ready, self.running, self.next_allowed_at, self.rate_id,
            parked, until, vt, since,
        ) = row  # fmt: skip
        self.parked = _read_parked(parked, until, vt, since)
        self.is_new = is_new
        self.is_changed = is_new
        self.stored = row[3:]  # in the order of `values`
        self.strands: dict[int, Strand] = {}

    @classmethod
    def new(cls, number: int, queue: str, tenant: str) -> TenantQueue:
        """Return a tenant queue that has no row yet."""
        return cls((number, queue, tenant, 0, 0, 0, 0, 0, 0, 0, 0, "", *_NOT_PARKED), is_new=True)

    def values(self) -> tuple[Any, ...]:
        """Return the columns that may have changed."""
        return (
            self.vt, self.ready_since, self.is_ready, self.open_strands, self.delayed, self.ready,
            self.running, self.next_allowed_at, self.rate_id,
            *(_NOT_PARKED if self.parked is None else (self.parked.text(), *_parked_values(self.parked))),
        )  # fmt: skip


class Strand:
    """One task of a tenant in a queue: how many jobs it has, which is first, whether it is parked."""

    __slots__ = (
        "head", "id", "is_changed", "is_head_stale", "is_new", "jobs", "parked", "ready", "stored", "task",
        "tenant_queue",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...], tenant_queue: TenantQueue, *, is_new: bool = False) -> None:
        """Read a row with `STRAND_COLUMNS`."""
        self.id, _, _, self.task, self.jobs, self.ready, key, id_, parked, _, until, vt, since = row
        self.tenant_queue = tenant_queue
        self.head: tuple[int, bytes] | None = None if key is None else (key, id_)
        self.parked = _read_parked(parked, until, vt, since)
        self.is_new = is_new
        self.is_changed = is_new
        self.is_head_stale = False
        self.stored = row[4:]  # in the order of `values`

    @classmethod
    def new(cls, number: int, tenant_queue: TenantQueue, task: str) -> Strand:
        """Return a strand that has no row yet."""
        row = (number, tenant_queue.id, tenant_queue.queue, task, 0, 0, None, None, None, *_NOT_PARKED)
        return cls(row, tenant_queue, is_new=True)

    @property
    def is_open(self) -> bool:
        """Whether a claim may take jobs from it."""
        return self.ready > 0 and self.parked is None

    def values(self) -> tuple[Any, ...]:
        """Return the columns that may have changed."""
        key, id = self.head or (None, None)
        if self.parked is None:
            return (self.jobs, self.ready, key, id, None, *_NOT_PARKED)
        return (
            self.jobs,
            self.ready,
            key,
            id,
            self.parked.text(),
            self.parked.line(),
            *_parked_values(self.parked),
        )


class RowCache(Generic[K, V]):
    """Rows of earlier transactions by key; None means that there is no row with that key.

    They are current until another connection writes; `Transaction.begin` empties the caches then.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[K, V | None] = {}

    @property
    def is_full(self) -> bool:
        """Whether the cache has to be emptied."""
        return len(self._rows) > MAX_CACHED_ROWS

    def add(self, rows: Mapping[K, V | None]) -> None:
        """Add committed rows; they replace older ones."""
        self._rows |= rows

    def get_many(self, names: Iterable[K]) -> dict[K, V | None]:
        """Return the cached rows among these keys."""
        return {name: self._rows[name] for name in names if name in self._rows}

    def get(self, name: K) -> V | None:
        """Return one row; None if it is not cached or does not exist."""
        return self._rows.get(name)

    def remove(self, name: K) -> None:
        """Remove one row."""
        self._rows.pop(name, None)

    def clear(self) -> None:
        """Remove all rows."""
        self._rows.clear()
