"""Turn rows into records, and jobs into the values that statements take. The list of columns is `columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID, SafeUUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.job import AttemptOutcome, AttemptRecord, JobRecord, NewJob, Progress
from fairlane.model.lifecycle.states import State
from fairlane.store.postgres.columns import RECORD, SENT

Row: TypeAlias = Sequence[Any]

WIDTH: Final = len(RECORD)
"""How many columns a record has; a statement may return more after them."""

_PLACES: Final = {column.name: place for place, column in enumerate(RECORD)}
_ID: Final = _PLACES["id"]
_STATE: Final = _PLACES["state"]
_IDEMPOTENCY_KEY: Final = _PLACES["idempotency_key"]
_CORRELATION_ID: Final = _PLACES["correlation_id"]
_PARENT_ID: Final = _PLACES["parent_id"]
_TAGS: Final = _PLACES["tags"]
_PROGRESS: Final = _PLACES["progress"]
_ATTEMPTS: Final = _PLACES["attempts"]

_new: Final = object.__new__
_set_int: Final = UUID.__dict__["int"].__set__
_set_is_safe: Final = UUID.__dict__["is_safe"].__set__
_UNKNOWN: Final = SafeUUID.unknown
_STATES: Final = {state.value: state for state in State}

_pack_progress = msgspec.msgpack.Encoder().encode
_unpack_progress = msgspec.msgpack.Decoder(Progress).decode
_write_attempt = msgspec.json.Encoder().encode
_read_attempt = msgspec.json.Decoder(AttemptRecord).decode
_write_tags = msgspec.json.Encoder().encode


class _Tail(msgspec.Struct, omit_defaults=True):
    """What the worker knows of an attempt that ends; the row knows the rest."""

    outcome: AttemptOutcome
    failure: Failure | None = None
    log: str | None = None


_write_tail = msgspec.json.Encoder().encode


def read_record(row: Row) -> JobRecord:
    """Read a row that begins with the columns of `RECORD`, from whichever table."""
    values = [*row]
    del values[WIDTH:]
    id = values[_ID]
    values[_ID] = plain_uuid(id)
    values[_STATE] = _STATES[values[_STATE]]
    if values[_IDEMPOTENCY_KEY] is None:
        values[_IDEMPOTENCY_KEY] = str(id)
    if values[_CORRELATION_ID] is None:
        values[_CORRELATION_ID] = str(id)
    if values[_PARENT_ID] is not None:
        values[_PARENT_ID] = plain_uuid(values[_PARENT_ID])
    values[_TAGS] = tuple(values[_TAGS] or ())
    if values[_PROGRESS] is not None:
        values[_PROGRESS] = _unpack_progress(values[_PROGRESS])
    values[_ATTEMPTS] = tuple(map(_read_attempt, values[_ATTEMPTS] or ()))
    return JobRecord(*values)  # by position: forty names take longer than all else in reading a row


def plain_uuid(value: Any) -> UUID:
    """Return a UUID of Python's own; the driver's is a subclass that pickles and prints differently.

    Not by its constructor, whose checks take eight times as long, nor by `object.__setattr__`, which looks up
    each slot every time.
    """
    uuid = _new(UUID)
    _set_int(uuid, value.int)
    _set_is_safe(uuid, _UNKNOWN)
    return uuid


def attempts_value(job: JobRecord) -> list[str] | None:
    """Return a job's attempts as they are stored."""
    return [_write_attempt(attempt).decode() for attempt in job.attempts] or None


def attempt_tail(outcome: AttemptOutcome, failure: Failure | None, log: str | None) -> str:
    """Return the end of an attempt's record as it is stored, from its outcome on.

    >>> attempt_tail("succeeded", None, None)
    '"outcome":"succeeded"}'
    """
    if failure is None and log is None:
        return _plain_tail(outcome)
    return _write_tail(_Tail(outcome, failure, log))[1:].decode()


@cache
def _plain_tail(outcome: AttemptOutcome) -> str:
    return _write_tail(_Tail(outcome))[1:].decode()


def progress_value(progress: Progress | None) -> bytes | None:
    """Return a handler's progress as it is stored."""
    return None if progress is None else _pack_progress(progress)


def once(values: list[Any]) -> list[Any]:
    """Return a column of equal values as that one value: the driver takes long over each value.

    >>> once([5, 5, 5]), once([5, 6])
    ([5], [5, 6])
    """
    return values[:1] if values.count(next(iter(values), None)) == len(values) else values


def if_any(values: list[Any]) -> list[Any] | None:
    """Return a column, or None if all its values are None.

    >>> if_any([None, None]), if_any([None, 7])
    (None, [None, 7])
    """
    return None if values.count(None) == len(values) else values


def _sender() -> Callable[[Sequence[NewJob]], tuple[list[Any] | None, ...]]:
    """Return a function that writes down the columns of new jobs, in the order of `SENT`.

    It is compiled from the list, as dataclasses are: a loop over attribute getters takes three times as long.
    """
    values = {
        "delay": "new.delay or None",
        "tags": "_write_tags(new.tags).decode() if new.tags else None",
    }
    packers = {"each": "", "shared": "once", "optional": "if_any"}
    columns = [
        f"{packers[str(column.sending)]}([{values.get(column.name, f'new.{column.name}')} for new in jobs])"
        for column in SENT
    ]
    made: Callable[[Sequence[NewJob]], tuple[list[Any] | None, ...]] = eval(  # noqa: S307 (our own list)
        f"lambda jobs: ({', '.join(columns)},)", {"once": once, "if_any": if_any, "_write_tags": _write_tags}
    )
    return made


sent_values: Final = _sender()
"""Return the columns of new jobs as `enqueue` and `insert_jobs` take them."""
