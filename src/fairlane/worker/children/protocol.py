"""What a worker and a child process say to each other: frames over one socket pair, never pickle.

A frame is four bytes of length and a message in MessagePack. Payloads and results are inside as the bytes
that the store holds. Every message is checked against its type when it is read: a handler shares the child's
memory, so the worker trusts no child.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, Progress
from fairlane.model.policy.amounts import LARGEST
from fairlane.model.retry.decision import (
    AttemptResult,
    Cancelled,
    Failed,
    HandedBack,
    PermanentFailure,
    Snoozed,
    Succeeded,
)
from fairlane.store.contract.breakers import OpenBreakers

MAX_FRAME: Final = 64 * 2**20
"""The longest frame that is read, in bytes: a length above it is not one of ours."""

_LENGTH: Final = 4


class ProtocolError(Exception):
    """The other side sent what is no frame of this protocol."""


# ── from the worker ───────────────────────────────────────────────────────────


class Setup(msgspec.Struct, frozen=True, tag="setup", kw_only=True):
    """The first frame: what to import, and how the worker was configured."""

    worker: str
    application: str
    path: tuple[str, ...]
    config_file: str | None = None
    options: dict[str, tuple[str, str]] = {}
    log_levels: dict[str, int] = {}
    reports_memory: bool = False


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Run one attempt. `store_now` is the store's time when this was sent, as far as the worker knows it.

    `open_breakers` is what the worker has heard of breakers that are not closed; the child hears it first.
    """

    job: JobRecord
    fence: int
    lease_until: Instant
    store_now: Instant
    open_breakers: tuple[OpenBreakers, ...] = ()


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Stop the attempt with this fence: the name of a `StopCause`, None for its soft timeout.

    A signal follows, since the child reads nothing while a handler runs.
    """

    fence: int
    cause: str | None


# ── from the child ────────────────────────────────────────────────────────────


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The application is imported."""


class NotReady(msgspec.Struct, frozen=True, tag="not_ready"):
    """The application cannot be imported; the child ends."""

    failure: Failure


class Reported(msgspec.Struct, frozen=True, tag="reported"):
    """The handler has reported its progress."""

    progress: Progress


class MetadataWritten(msgspec.Struct, frozen=True, tag="metadata"):
    """The handler has changed the metadata of its job: the whole, as JSON."""

    metadata: bytes


class Spent(msgspec.Struct, frozen=True, tag="spent"):
    """The handler has spent something: the sum of the attempt so far, in millionths."""

    total: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]


class Logged(msgspec.Struct, frozen=True, tag="logged"):
    """A log record of the child. `extra` holds what JSON can; everything else is text."""

    name: str
    level: int
    message: str
    created: float
    path: str = ""
    line: int = 0
    function: str = ""
    error: str | None = None
    extra: dict[str, Any] = {}


class SucceededIn(msgspec.Struct, frozen=True, tag="succeeded_in"):
    """The handler has settled the attempt in its own transaction, which may not be committed yet (S63)."""


class AttemptEnded(msgspec.Struct, frozen=True, tag="ended"):
    """The attempt is over: the kind of its result and the result itself; no kind if the claim was lost.

    `leftovers` says why the child cannot run another job: what the handler has left behind.
    """

    kind: str | None
    body: msgspec.Raw
    log: str | None = None
    leftovers: str | None = None
    resident: int = 0
    metadata: bytes | None = None
    spent: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)] = 0


FromWorker: TypeAlias = Setup | Start | Stop
FromChild: TypeAlias = (
    Ready | NotReady | Reported | MetadataWritten | Spent | Logged | SucceededIn | AttemptEnded
)

_encoder: Final = msgspec.msgpack.Encoder()
FROM_WORKER: Final[msgspec.msgpack.Decoder[FromWorker]] = msgspec.msgpack.Decoder(FromWorker)
FROM_CHILD: Final[msgspec.msgpack.Decoder[FromChild]] = msgspec.msgpack.Decoder(FromChild)

_RESULTS: Final[dict[str, msgspec.msgpack.Decoder[Any]]] = {
    kind.__name__: msgspec.msgpack.Decoder(kind)
    for kind in (Succeeded, Failed, Snoozed, PermanentFailure, Cancelled, HandedBack)
}
_read_metadata: Final = msgspec.json.Decoder(dict[str, Any]).decode
_NOTHING: Final = msgspec.Raw(b"\xc0")


def frame(message: FromWorker | FromChild) -> bytes:
    """Return a message as one frame.

    >>> FrameReader().feed(frame(Ready()))[0] == frame(Ready())[4:]
    True
    """
    body = _encoder.encode(message)
    return len(body).to_bytes(_LENGTH, "big") + body


def ended(
    result: AttemptResult | None,
    log: str | None,
    leftovers: str | None,
    resident: int,
    metadata: bytes | None = None,
    spent: int = 0,
) -> AttemptEnded:
    """Return the frame that reports a result."""
    if result is None:
        return AttemptEnded(None, _NOTHING, log, leftovers, resident, metadata, spent)
    body = msgspec.Raw(_encoder.encode(result))
    return AttemptEnded(type(result).__name__, body, log, leftovers, resident, metadata, spent)


def metadata_in(metadata: bytes) -> bytes:
    """Return metadata that a child reports; `ProtocolError` if it is no JSON object.

    A job with anything else could never be read again.
    """
    try:
        _read_metadata(metadata)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(str(error)) from None
    return metadata


def result_in(message: AttemptEnded) -> AttemptResult | None:
    """Return the result that a child reports; `ProtocolError` if there is no such result."""
    if message.kind is None:
        return None
    decoder = _RESULTS.get(message.kind)
    if decoder is None:
        text = f"there is no result {message.kind[:40]!r}"
        raise ProtocolError(text)
    try:
        result: AttemptResult = decoder.decode(message.body)
    except msgspec.DecodeError as error:
        raise ProtocolError(str(error)) from None
    return result


class FrameReader:
    """Cuts a stream of bytes into the messages of its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes as they come; return the messages that are whole by now."""
        self._rest += data
        found: list[bytes] = []
        start, end = 0, len(self._rest)
        while end - start >= _LENGTH:
            length = int.from_bytes(self._rest[start : start + _LENGTH], "big")
            if length > MAX_FRAME:
                text = f"a frame of {length} bytes"
                raise ProtocolError(text)
            if end - start < _LENGTH + length:
                break
            found.append(bytes(self._rest[start + _LENGTH : start + _LENGTH + length]))
            start += _LENGTH + length
        del self._rest[:start]
        return found
