"""Settings of the archive: the table `[archive]` of fairlane.toml. Checks nothing."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Compression: TypeAlias = Literal["gzip", "none"]
Format: TypeAlias = Literal["jsonl", "parquet"]


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where finished jobs go before they are removed (S105): a folder, or a URL that fsspec knows.

    Without `to` they are removed for good. `format` is that of the files; Parquet needs pyarrow.
    """

    to: str | None = None
    format: Format = "jsonl"
    compress: Compression = "gzip"

    def __repr__(self) -> str:
        """Show no URL, which may hold a password."""
        return f"<ArchiveSettings {'with' if self.to else 'without'} an archive>"


NO_ARCHIVE: Final = ArchiveSettings()
