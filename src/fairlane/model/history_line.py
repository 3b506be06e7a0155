"""A finished job as a line of JSON: what archives and exports hold, and what imports read (S105, S116).

Every value is exact and as it is stored; instants are written as text, durations in seconds, bytes as the
text that they are, or in base64. Knows no file.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from fairlane.model.finished_job import FinishedJob, problem_of
from fairlane.model.instants import SECOND, iso, to_instant, to_micros
from fairlane.model.job import JobRecord
from fairlane.model.review import ReviewRecord
from fairlane.model.scheduling.priority import sort_key

LINE_FORMAT: Final = 1
"""What is written. A reader refuses any other."""

_BYTES: Final = ("payload", "metadata", "result")
_DURATIONS: Final = ("timeout", "stuck_after")
_OF_A_CLAIM: Final = ("worker", "started_at", "lease_until", "is_cancel_asked", "progress", "sort_key")
"""What a finished job has not, or what follows from other fields."""

FIELDS: Final = (
    *("format", *(name for name in JobRecord.__struct_fields__ if name not in _OF_A_CLAIM)),
    "review",
)
"""Every field of a line, in this order."""


class BadLineError(ValueError):
    """A line that is no finished job; the message names the field."""


def line_values(finished: FinishedJob) -> dict[str, Any]:
    """Return a finished job as values of JSON."""
    values = msgspec.to_builtins(finished.job, builtin_types=(bytes,))
    for name in _BYTES:
        values[name] = _from_bytes(values[name])
    for name in _DURATIONS:
        values[name] = None if values[name] is None else values[name] / SECOND
    values |= {"format": LINE_FORMAT, "review": msgspec.to_builtins(finished.review)}
    written: dict[str, Any] = _with_times({name: values[name] for name in FIELDS}, _write_time)
    return written


def write_line(finished: FinishedJob) -> bytes:
    """Return a finished job as a line, with its end."""
    return msgspec.json.encode(line_values(finished)) + b"\n"


def read_line(line: bytes) -> FinishedJob:
    """Return the finished job of a line; BadLineError if it is none."""
    try:
        decoded: object = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"is no JSON: {error}"
        raise BadLineError(message) from None
    if not isinstance(decoded, dict):
        raise BadLineError("is no JSON object")
    values = cast("dict[str, Any]", decoded)
    if values.get("format") != LINE_FORMAT:
        message = f"format: is {values.get('format')!r}; this version reads {LINE_FORMAT}"
        raise BadLineError(message)
    unknown = sorted(set(values) - set(FIELDS))
    if unknown:
        message = f"{unknown[0]}: is no field of a finished job"
        raise BadLineError(message)
    finished = _finished(values)
    problem = problem_of(finished)
    if problem is not None:
        raise BadLineError(problem)
    return finished


def _finished(values: dict[str, Any]) -> FinishedJob:
    try:
        known: dict[str, Any] = _with_times(values, _read_time)
        for name in _BYTES:
            if known.get(name) is not None:
                known[name] = _to_bytes(name, known[name])
        for name in _DURATIONS:
            if known.get(name) is not None:
                known[name] = to_micros(msgspec.convert(known[name], float))
        review = msgspec.convert(known.pop("review", None), ReviewRecord | None)
        known["sort_key"] = 0
        job = msgspec.convert(known, JobRecord, builtin_types=(bytes,))
    except BadLineError:
        raise
    except (ValueError, OverflowError, RecursionError) as error:
        text, _, path = str(error).rpartition(" - at `$.")
        raise BadLineError(f"{path.rstrip('`')}: {text}" if text else str(error)) from None
    return FinishedJob(msgspec.structs.replace(job, sort_key=sort_key(job.run_at, job.priority)), review)


def _from_bytes(value: bytes | None) -> str | dict[str, str] | None:
    r"""Return bytes as the text that they are.

    >>> _from_bytes(b"{}"), _from_bytes(b"\xff")
    ('{}', {'base64': '/w=='})
    """
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _to_bytes(name: str, value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    packed = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if list(packed) == ["base64"] and isinstance(packed["base64"], str):
        return b64decode(packed["base64"], validate=True)
    message = f"{name}: is neither a text nor an object with base64"
    raise BadLineError(message)


def _with_times(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a value in which what is called `at`, or `…_at`, is converted."""
    if isinstance(value, list | tuple):
        return [_with_times(one, convert) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {
        name: convert(one) if name == "at" or name.endswith("_at") else _with_times(one, convert)
        for name, one in cast("dict[str, Any]", value).items()
    }


def _write_time(value: Any) -> Any:
    return iso(value)


def _read_time(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        message = f"an instant is written as 2026-01-31T09:30:00.000000Z, not {str(value)[:40]!r}"
        raise BadLineError(message)
    return to_instant(datetime.fromisoformat(value))
