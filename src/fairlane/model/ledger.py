"""Say what was seen of a run from outside, one line an event. Knows no file, no clock and no store.

Enqueuers, handlers, workers, duties and the harness each append lines to a file of their own; `check` in
`fairlane.model.history` judges them. All times are whole microseconds of one clock of the recording
machine, best its monotonic one, which processes share and which campaigns do not set. Whether ``at`` is
taken before or after the call decides what it proves, so each record says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle import Event, Home, State

Moment: TypeAlias = int
"""Microseconds of the recording machine's clock; no `Instant`, since its epoch may be the machine's start."""

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]

KEYS: Final = {
    "job": "j",
    "tenant": "t",
    "queue": "q",
    "task": "k",
    "gate": "g",
    "key": "i",
    "batch": "b",
    "created": "c",
    "attempt": "n",
    "fence": "f",
    "worker": "w",
    "pid": "p",
    "state": "s",
    "home": "h",
    "from_at": "from",
}
"""The short key of each field on a line; a field that is not listed is written by its own name."""

_TAG: Final = "e"
_OPENING: Final = b'{"e":"'


class LedgerError(FairlaneError, ValueError):
    """A ledger holds something that no recorder writes; ``line`` counts from 1 within its file."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} of the ledger is no record: {why}")
        self.line = line


class _Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field=_TAG,
    tag=str.lower,
    rename=KEYS,
):
    """One line. Holds only text and numbers, so the garbage collector need not follow it."""


class _Work(_Line, frozen=True, kw_only=True):
    """What an enqueue says about a job. ``once`` is a task's `at_most_once` (S63)."""

    job: str
    tenant: str
    queue: str
    task: str
    at: Moment
    gate: str | None = None
    once: bool = False


class Attempted(_Work, frozen=True, kw_only=True):
    """An enqueue is about to be sent under this id; the job may or may not come to be.

    Written *before* the call by whoever can be killed in it, else its job would look like nobody's.
    ``key`` is an idempotency key. A ``batch`` label says that its members become visible together (S12):
    label only members whose keys cannot make one of them a repeat.
    """

    key: str | None = None
    batch: str | None = None


class Acknowledged(_Work, frozen=True, kw_only=True):
    """The store confirmed an enqueue; ``at`` is after the reply. A repeat has ``created=False`` (S13)."""

    key: str | None = None
    batch: str | None = None
    created: bool = True


class Due(_Work, frozen=True, kw_only=True):
    """A slot that policy says must be fired, and the id its job will have (S57); the harness knows both."""

    schedule: str
    slot: int


class Fired(_Work, frozen=True, kw_only=True):
    """A schedule slot made a job, and the store confirmed it; ``at`` is after the reply."""

    schedule: str
    slot: int
    created: bool = True


class Started(_Line, frozen=True, kw_only=True):
    """A handler began: its first act, so ``at`` is after the claim. ``tenant`` is the one it saw."""

    job: str
    attempt: Positive
    fence: Positive
    worker: str
    pid: int
    at: Moment
    tenant: str | None = None


class Ended(_Line, frozen=True, kw_only=True):
    """A handler left, by returning or by raising: its last act."""

    job: str
    attempt: Positive
    fence: Positive
    outcome: Literal["returned", "raised"]
    at: Moment


class Settled(_Line, frozen=True, kw_only=True):
    """The store accepted a settlement: the event asked for and the state it answered.

    ``at`` is *before* the request that was accepted was sent, so the claim was held at least until then.
    """

    job: str
    attempt: Positive
    fence: Positive
    event: Event
    state: State
    at: Moment


class Stale(_Line, frozen=True, kw_only=True):
    """The store answered `STALE` to a renewal or settlement (S36)."""

    job: str
    fence: Positive
    at: Moment


class Reclaimed(_Line, frozen=True, kw_only=True):
    """A duty took a lost claim (S38) and the job went to ``state``; ``at`` is *before* the call."""

    job: str
    fence: Positive
    state: State
    at: Moment


class Withdrawn(_Line, frozen=True, kw_only=True):
    """A waiting job was ended without a claim: cancelled, expired, purged, condemned; ``at`` is after."""

    job: str
    state: State
    at: Moment


class Found(_Line, frozen=True, kw_only=True):
    """One row of the final reading: the home it was found in, its state and its counters (S24)."""

    job: str
    home: Home
    state: State
    attempt: Natural
    failures: Natural
    tenant: str | None = None


class Reading(_Line, frozen=True, kw_only=True):
    """The final reading reached its end and wrote this many `Found` lines for each home."""

    hot: Natural
    history: Natural
    dead: Natural


class Bound(_Line, frozen=True, kw_only=True):
    """A limit that was in force for every claim made from ``from_at`` until ``until``.

    Its subject is the jobs that match every field given: (queue, tenant) for a running limit (S45), a
    gate (S43), and queue, (queue, tenant) or task for a rate (S44). With ``per`` it is a rate of ``limit``
    starts in so many microseconds, else a number of claims held at once. ``slack`` is the longest time
    from a claim to its `Started` line, stalls that the campaign itself makes included.
    """

    limit: Positive
    queue: str | None = None
    tenant: str | None = None
    task: str | None = None
    gate: str | None = None
    per: Positive | None = None
    burst: Positive = 1
    from_at: Moment | None = None
    until: Moment | None = None
    slack: Natural = 0

    def __post_init__(self) -> None:
        """Refuse a bound on everything: no limit of Fairlane's is one, so it is a mistyped line."""
        if self.queue is self.tenant is self.task is self.gate is None:
            raise ValueError("a bound names a queue, tenant, task or gate")
        if min(self.limit, self.burst, 1 if self.per is None else self.per) < 1:
            raise ValueError("limit, burst and per are 1 or more")


class Outage(_Line, frozen=True, kw_only=True):
    """The store was killed at ``at`` and served again by ``until``.

    A claim may be lost in it with its attempt number, because claims need not be durable (S36). ``loses``
    is the store's stated durability: what it accepted so long before may be gone too, which counts from
    the *request*, so it includes the longest time a request took. Zero where acknowledged means fsynced.
    """

    at: Moment
    until: Moment
    loses: Natural = 0


class Torn(_Line, frozen=True, kw_only=True):
    """A file ended in part of a line, this many bytes: its writer was killed while appending."""

    size: Natural


Enqueue: TypeAlias = Attempted | Acknowledged | Due | Fired
OfJob: TypeAlias = Enqueue | Started | Ended | Settled | Stale | Reclaimed | Withdrawn | Found
Record: TypeAlias = OfJob | Reading | Bound | Outage | Torn

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Record)


def encode_line(record: Record) -> bytes:
    r"""Give the record as one line, its newline included, to be appended by a single write.

    >>> encode_line(Stale(job="a", fence=7, at=12))
    b'{"e":"stale","j":"a","f":7,"at":12}\n'
    """
    return _encoder.encode(record) + b"\n"


def decode_lines(data: Iterable[bytes]) -> Iterator[Record]:
    r"""Read the lines of *one* file, as iterating over it in binary mode gives them.

    A last line that was cut short becomes a `Torn`; one that is whole but for its newline is read. Anything
    else that is no record raises `LedgerError`, a torn line that others follow included.

    >>> list(decode_lines([b'{"e":"stale","j":"a","f":7,"at":12}\n', b'{"e":"sta']))
    [Stale(job='a', fence=7, at=12), Torn(size=9)]
    """
    torn: tuple[int, Torn] | None = None
    for number, line in enumerate(data, 1):
        if torn is not None:
            raise LedgerError(torn[0], "it is torn, but lines follow it")
        try:
            record = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if isinstance(error, msgspec.ValidationError) or not _is_beginning(line):
                raise LedgerError(number, str(error)) from error
            torn = number, Torn(size=len(line))
        else:
            yield record
    if torn is not None:
        yield torn[1]


def _is_beginning(line: bytes) -> bool:
    """Whether a write that was cut short can have left this: a record's opening, and no newline."""
    return not line.endswith(b"\n") and line[: len(_OPENING)] == _OPENING[: len(line)]
