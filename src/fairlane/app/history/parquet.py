"""Finished jobs as rows of a Parquet file: columns to search by, and the whole line of each (S105, S116).

What comes back is read from the line alone, so that there is one format of a finished job. Needs pyarrow,
which is imported when a file is written or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import IO, Any, Final

from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import write_line

MAGIC: Final = b"PAR1"
"""How a Parquet file begins."""

NEEDED: Final = "fairlane[parquet]"
"""The extra that brings what is needed."""

LINE: Final = "line"
"""The column that has everything."""

GROUP_SIZE: Final = 8 * 2**20
"""How many characters of lines make a group of rows: together they are compressed better."""

_TEXTS: Final = (
    "tenant",
    "queue",
    "task",
    "state",
    "because",
    "correlation_id",
    "idempotency_key",
    "created_by",
)
_NUMBERS: Final = ("priority", "attempt", "failures")
_TIMES: Final = ("enqueued_at", "run_at", "settled_at")
_AT_ONCE: Final = 100


def is_possible() -> bool:
    """Whether Parquet can be read and written here. Imports nothing."""
    return find_spec("pyarrow") is not None


class ParquetFile:
    """Jobs as a Parquet file in memory. Rows are compressed in groups of some megabytes."""

    def __init__(self, codec: str) -> None:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
        text, number = arrow.large_string(), arrow.int32()
        self._arrow = arrow
        self._schema = arrow.schema(
            [
                ("id", text),
                *((name, text) for name in _TEXTS),
                *((name, number) for name in _NUMBERS),
                *((name, arrow.timestamp("us", tz="UTC")) for name in _TIMES),
                ("tags", arrow.list_(text)),
                ("review", text),
                (LINE, text),
            ]
        )
        self._rows: list[dict[str, Any]] = []
        self._size = 0
        self._data = BytesIO()
        self._writer: Any = parquet.ParquetWriter(self._data, self._schema, compression=codec)

    def add(self, jobs: Sequence[FinishedJob]) -> None:
        """Add a row for each."""
        for row in map(_row, jobs):
            self._rows.append(row)
            self._size += len(row[LINE])
            if self._size > GROUP_SIZE:
                self._end_group()

    def _end_group(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._size = [], 0

    def write(self, file: IO[bytes]) -> None:
        """Write the file. Nothing can be added any more; it may be written again."""
        self._end_group()
        self._writer.close()
        file.write(self._data.getbuffer())


def read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Return the line of each row; ValueError if this is no file of Fairlane, or pyarrow is missing."""
    if not is_possible():
        message = f"source: is a Parquet file; install {NEEDED} to read it"
        raise ValueError(message)
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    try:
        with parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            if LINE not in schema.names or not _is_text(arrow, schema.field(LINE).type):
                message = f"source: is a Parquet file without a column `{LINE}` of texts: no file of Fairlane"
                raise ValueError(message)
            for batch in opened.iter_batches(_AT_ONCE, columns=[LINE], use_threads=False):
                yield from _texts(batch.column(0).to_pylist())
    except (arrow.ArrowException, OSError) as error:
        message = f"source: is a Parquet file that is damaged: {error}"
        raise ValueError(message) from None


def _is_text(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _texts(values: Iterable[str | None]) -> Iterator[bytes]:
    for value in values:
        yield (value or "").encode()


def _row(finished: FinishedJob) -> dict[str, Any]:
    job, review = finished.job, finished.review
    return {
        "id": str(job.id),
        **{name: getattr(job, name) for name in (*_TEXTS, *_NUMBERS, *_TIMES)},
        "tags": list(job.tags),
        "review": None if review is None else review.review,
        LINE: write_line(finished).decode().rstrip("\n"),
    }
