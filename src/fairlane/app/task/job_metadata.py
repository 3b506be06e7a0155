"""The metadata of a job as its running handler sees and changes it (S73). Stores nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from threading import Lock
from typing import Any, cast

import msgspec

from fairlane.app.enqueue import checks
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.job import Json
from fairlane.model.job import JobRecord


def room_of(job: JobRecord, max_size: int) -> int:
    """Return how many bytes the metadata of a job may take beside its arguments and tags (S5)."""
    return max_size - len(job.payload) - sum(len(tag.encode()) for tag in job.tags)


class JobMetadata(MutableMapping[str, Json]):
    """The metadata of the running job; every change replaces the whole, and is checked at once.

    A list or dict that is read is a copy: assign it again to change it. `room` is how many bytes the metadata
    may take, None without a bound.
    """

    def __init__(
        self, values: Mapping[str, Any], written: Callable[[bytes], None], room: int | None = None
    ) -> None:
        """`written` is called with the whole, encoded, after each change."""
        self._encoded = msgspec.json.encode(dict(values))
        self._values: dict[str, Any] = msgspec.json.decode(self._encoded)
        self._written = written
        self._room = room
        self._lock = Lock()

    def __getitem__(self, key: str) -> Json:
        """Return a value; a list or dict as a copy."""
        value = self._values[key]
        if isinstance(value, dict | list):
            value = msgspec.json.decode(msgspec.json.encode(value))
        return cast("Json", value)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __setitem__(self, key: str, value: Json) -> None:
        """Set a value; ValueError if it is not JSON, or too large together with what else is stored."""
        with self._lock:
            self._replace({**self._values, key: value})

    def __delitem__(self, key: str) -> None:
        with self._lock:
            self._replace({name: self._values[name] for name in self._values if name != self._known(key)})

    def update(self, /, *given: Any, **values: Json) -> None:
        """Set several values, as `dict.update` does: all of them or, if one is refused, none."""
        with self._lock:
            self._replace({**self._values, **dict(*given, **values)})

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._replace({})

    def _known(self, key: str) -> str:
        if key not in self._values:
            raise KeyError(key)
        return key

    def _replace(self, values: dict[str, Any]) -> None:
        problems = ProblemList(0)
        encoded = checks.metadata(problems, values)
        if problems.found:
            first = problems.found[0]
            message = f"{first.field}: {first.message}; {first.hint}"
            raise ValueError(message)
        if self._room is not None and len(encoded) > self._room:
            message = (
                f"metadata: takes {len(encoded):,} bytes, beside the arguments there is room for "
                f"{max(0, self._room):,}; store less, or raise payload.max_size"
            )
            raise ValueError(message)
        if encoded != self._encoded:
            self._encoded, self._values = encoded, msgspec.json.decode(encoded)
            self._written(encoded)
