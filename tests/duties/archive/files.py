"""Read what an archive holds. Knows no store."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from uuid import UUID

from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import read_line


def read_file(path: Path) -> list[FinishedJob]:
    """Return the jobs of a file."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [read_line(line) for line in text.splitlines()]


def files(folder: Path) -> list[Path]:
    """Return the complete files, oldest first."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".part")


def archived(folder: Path) -> Counter[UUID]:
    """Return how often each job is in the archive."""
    return Counter(one.job.id for path in files(folder) for one in read_file(path))


def parts(folder: Path) -> list[Path]:
    """Return the files that are not complete."""
    return list(folder.rglob("*.part"))
