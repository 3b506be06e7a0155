"""The records of a run, seen from outside: one JSON line per event. Knows no file, no clock and no store.

Clients, handlers, workers, duties and the harness each append lines to their own file; `check` in
`fairlane.lab.history` judges them. All times are whole microseconds of one clock of the recording machine:
best its monotonic clock, which processes share and nobody sets. Whether ``at`` is taken before or after the
call decides what it proves, so each record says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle.states import Event, Home, State

Moment: TypeAlias = int
"""Microseconds of the recording clock. Not an `Instant`: its epoch may be the start of the machine."""

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
"""The short key of each field on a line; other fields are written with their own name."""

_TAG: Final = "e"
_OPENING: Final = b'{"e":"'


class LedgerError(FairlaneError, ValueError):
    """A ledger has a line that is no record; ``line`` counts from 1 within its file."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} of the ledger is not a record: {why}")
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
    """One line. Has only text and numbers, so the garbage collector need not track it."""


class _EnqueueRecord(_Line, frozen=True, kw_only=True):
    """What every record of an enqueue says. ``once`` is a task's `at_most_once` (S63)."""

    job: str
    tenant: str
    queue: str
    task: str
    at: Moment
    gate: str | None = None
    breaker: str | None = None
    budget: str | None = None
    once: bool = False


class Attempted(_EnqueueRecord, frozen=True, kw_only=True):
    """An enqueue is about to be sent with this id; the job may or may not be created.

    Written *before* the call by a process that may be killed in it; otherwise its job would look as if nobody
    had enqueued it. ``key`` is an idempotency key. The members of a ``batch`` become visible together (S12):
    label only members whose keys cannot make one of them a repeat.
    """

    key: str | None = None
    batch: str | None = None


class Acknowledged(_EnqueueRecord, frozen=True, kw_only=True):
    """The store confirmed an enqueue; ``at`` is after the reply. A repeat has ``created=False`` (S13)."""

    key: str | None = None
    batch: str | None = None
    created: bool = True


class Due(_EnqueueRecord, frozen=True, kw_only=True):
    """A schedule slot that must fire, and the id that its job will have (S57); the harness knows both."""

    schedule: str
    slot: int


class Fired(_EnqueueRecord, frozen=True, kw_only=True):
    """A schedule slot created a job, and the store confirmed it; ``at`` is after the reply."""

    schedule: str
    slot: int
    created: bool = True


class Started(_Line, frozen=True, kw_only=True):
    """A handler started: its first action, so ``at`` is after the claim. ``tenant`` is the one it saw."""

    job: str
    attempt: Positive
    fence: Positive
    worker: str
    pid: int
    at: Moment
    tenant: str | None = None


class Ended(_Line, frozen=True, kw_only=True):
    """A handler ended by returning or raising: its last action."""

    job: str
    attempt: Positive
    fence: Positive
    outcome: Literal["returned", "raised"]
    at: Moment


class Settled(_Line, frozen=True, kw_only=True):
    """The store accepted a settlement: the requested event and the resulting state.

    ``unstarted``: the worker handed the claim back and says that no handler started (S68). ``spent``: the sum
    that its worker reported (S113); None if somebody else ended the claim, or nothing is known of it. ``at``
    is *before* the accepted request was sent, so the claim was held at least until then.
    """

    job: str
    attempt: Positive
    fence: Positive
    event: Event
    state: State
    at: Moment
    unstarted: bool = False
    spent: Natural | None = None


class Stale(_Line, frozen=True, kw_only=True):
    """The store answered `STALE` to a renewal or settlement (S36)."""

    job: str
    fence: Positive
    at: Moment


class Reclaimed(_Line, frozen=True, kw_only=True):
    """A duty reclaimed an expired lease (S38), and the job went to ``state``; ``at`` is *before* the call."""

    job: str
    fence: Positive
    state: State
    at: Moment


class Withdrawn(_Line, frozen=True, kw_only=True):
    """A waiting job ended without a claim: cancelled, expired, purged, moved to dead; ``at`` is after."""

    job: str
    state: State
    at: Moment


class Paid(_Line, frozen=True, kw_only=True):
    """A handler is about to spend: ``total`` is the sum of its attempt so far, in millionths (S113)."""

    job: str
    fence: Positive
    total: Natural
    at: Moment


class Permitted(_Line, frozen=True, kw_only=True):
    """The store let this claim pass a breaker that is not closed (S110); ``at`` is after the reply.

    With ``tenant`` it is the breaker of this tenant alone.
    """

    job: str
    fence: Positive
    breaker: str
    at: Moment
    tenant: str | None = None


class Released(_Line, frozen=True, kw_only=True):
    """Whoever had a permit is about to tell how it went; without ``passed`` it says nothing about that.

    ``at`` is *before* the request, so the permit was held at least until then, unless its claim ended.
    """

    job: str
    fence: Positive
    breaker: str
    at: Moment
    passed: bool | None = None
    tenant: str | None = None


class Found(_Line, frozen=True, kw_only=True):
    """One row of the final reading: its home, its state and its counters (S24).

    A ledger of before has no ``crashes``.
    """

    job: str
    home: Home
    state: State
    attempt: Natural
    failures: Natural
    crashes: Natural | None = None
    tenant: str | None = None


class Reading(_Line, frozen=True, kw_only=True):
    """The final reading is complete and wrote this many `Found` lines for each home."""

    hot: Natural
    history: Natural
    dead: Natural


class Bound(_Line, frozen=True, kw_only=True):
    """A limit that was in force for every claim made from ``from_at`` until ``until``.

    Its subject is the jobs that match every field given: (queue, tenant) for a running limit (S45), a
    gate (S43), and queue, (queue, tenant) or task for a rate (S44). With ``per`` it is a rate of ``limit``
    starts in that many microseconds, else a number of claims held at once. ``slack`` is the longest time
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
        """Refuse a bound on everything: Fairlane has no such limit, so the line is wrong."""
        if self.queue is self.tenant is self.task is self.gate is None:
            raise ValueError("a bound names a queue, tenant, task or gate")
        if min(self.limit, self.burst, 1 if self.per is None else self.per) < 1:
            raise ValueError("limit, burst and per are 1 or more")


class Opened(_Line, frozen=True, kw_only=True):
    """A breaker was opened: by ``at`` it was open, and nobody passes before ``until`` (S58, S111).

    Write one for each time that it opens after having been closed; it opens again by itself if somebody with
    a permit fails. ``ramp`` is how many pass at once at the end. ``slack`` is the longest time between what
    happens and its line.
    """

    breaker: str
    at: Moment
    until: Moment
    tenant: str | None = None
    ramp: Positive = 8
    slack: Natural = 0


class Ceiling(_Line, frozen=True, kw_only=True):
    """What a budget may spend, and what each of its jobs reserves, between ``from_at`` and ``until`` (S59).

    These lie in one period. With ``tenant`` it is the account of this tenant alone. ``slack`` is the longest
    time from a claim to its `Started` line.
    """

    budget: str
    ceiling: Natural
    estimate: Natural = 0
    tenant: str | None = None
    from_at: Moment | None = None
    until: Moment | None = None
    slack: Natural = 0


class Counted(_Line, frozen=True, kw_only=True):
    """The final reading: what the store counts as spent of a budget by a task of a tenant, in all periods.

    Write one for each budget at least, also if nothing was spent.
    """

    budget: str
    tenant: str
    task: str
    spent: Natural = 0


class Outage(_Line, frozen=True, kw_only=True):
    """The store was killed at ``at`` and served again by ``until``.

    A claim and its attempt number may be lost in it, because claims need not be durable (S36). ``loses`` is
    the store's stated durability: what it accepted at most this long before may be lost too. It counts from
    the *request*, so it includes the longest duration of a request. Zero if acknowledged means fsynced.
    """

    at: Moment
    until: Moment
    loses: Natural = 0


class Torn(_Line, frozen=True, kw_only=True):
    """A file ended with part of a line, this many bytes: its writer was killed while appending."""

    size: Natural


Enqueue: TypeAlias = Attempted | Acknowledged | Due | Fired
ClaimEvent: TypeAlias = Started | Ended | Settled | Reclaimed | Paid | Permitted | Released
JobEvent: TypeAlias = Enqueue | ClaimEvent | Stale | Withdrawn | Found
RunEvent: TypeAlias = Reading | Bound | Opened | Ceiling | Counted | Outage | Torn
Record: TypeAlias = JobEvent | RunEvent

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Record)


def encode_line(record: Record) -> bytes:
    r"""Return the record as one line with its newline, to be appended with a single write.

    >>> encode_line(Stale(job="a", fence=7, at=12))
    b'{"e":"stale","j":"a","f":7,"at":12}\n'
    """
    return _encoder.encode(record) + b"\n"


def decode_lines(data: Iterable[bytes]) -> Iterator[Record]:
    r"""Read the lines of *one* file, as iterating over it in binary mode returns them.

    A last line that was cut short becomes a `Torn`; one that lacks only its newline is read. Any other line
    that is not a record raises `LedgerError`, also a torn line that others follow.

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
    """Whether an interrupted write can have left this: the beginning of a record, without a newline."""
    return not line.endswith(b"\n") and line[: len(_OPENING)] == _OPENING[: len(line)]
