"""Which process started another one, as Linux tells. A job that was lost with its worker runs in a child."""

from __future__ import annotations

from pathlib import Path


def parent_of(pid: int) -> int:
    """Return the process that started this one, which must live."""
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[1])
