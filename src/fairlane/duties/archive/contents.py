"""What a file of the archive holds: JSON lines, or Parquet (S105). Knows no store and no place."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import IO, Any, Final, Protocol

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.app.history import parquet
from fairlane.model.errors import ConfigError
from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import write_line

ENDS: Final = (".jsonl.gz", ".jsonl", ".parquet")
"""How the names of files end. A batch is in one file, whatever the settings of who began it were."""

_GZIP: Final = 16 + zlib.MAX_WBITS


class Content(Protocol):
    """The content of a file, made as jobs come."""

    def add(self, jobs: Sequence[FinishedJob]) -> None:
        """Add jobs."""

    def write(self, file: IO[bytes]) -> None:
        """Write all of it; may be repeated."""


def check_archive(settings: ArchiveSettings) -> None:
    """Raise ConfigError if this process cannot write the archive that is set."""
    if settings.to is not None and settings.format == "parquet" and not parquet.is_possible():
        message = f"it is 'parquet', which needs pyarrow: install {parquet.NEEDED}."
        raise ConfigError(message, key="archive.format", allowed="'jsonl' needs nothing")


def end_of(settings: ArchiveSettings) -> str:
    """Return how the name of a file ends.

    >>> end_of(ArchiveSettings()), end_of(ArchiveSettings(format="parquet"))
    ('.jsonl.gz', '.parquet')
    """
    if settings.format == "parquet":
        return ".parquet"
    return ".jsonl.gz" if settings.compress == "gzip" else ".jsonl"


def new_content(settings: ArchiveSettings) -> Content:
    """Return the content of a new file. May take a while: it imports what writes it."""
    if settings.format == "parquet":
        return parquet.ParquetFile(settings.compress)
    return _Lines(settings)


class _Lines:
    """JSON lines, compressed as they come."""

    def __init__(self, settings: ArchiveSettings) -> None:
        self._gzip: Any = zlib.compressobj(6, zlib.DEFLATED, _GZIP) if settings.compress == "gzip" else None
        self._parts: list[bytes] = []

    def add(self, jobs: Sequence[FinishedJob]) -> None:
        """Add a line for each."""
        for one in jobs:
            line = write_line(one)
            self._parts.append(line if self._gzip is None else self._gzip.compress(line))

    def write(self, file: IO[bytes]) -> None:
        """Write all lines."""
        file.writelines(self._parts)
        if self._gzip is not None:
            file.write(self._gzip.copy().flush())
