"""Say what holds memory: allocations by line if they are traced, else objects by type. Changes nothing."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from typing import Any, Final, cast

from fairlane.runtime.memory import is_memory_known, resident_memory

_SHOWN: Final = 40
"""How many lines or types are shown."""

_MAX_OBJECTS: Final = 5_000_000
"""How many objects are looked at: each costs about a microsecond, while other threads take turns."""


def memory_snapshot() -> str:
    """Return the largest holders of memory, as text."""
    lines: list[str] = []
    if is_memory_known():
        lines.append(f"resident memory: {resident_memory():,} bytes")
    lines += _traced() if tracemalloc.is_tracing() else _counted()
    return "\n".join(lines) + "\n"


def _traced() -> list[str]:
    held, peak = tracemalloc.get_traced_memory()
    lines = [f"traced memory: {held:,} bytes, at most {peak:,}", f"{'BYTES':>14} {'BLOCKS':>10}  LINE"]
    for one in tracemalloc.take_snapshot().statistics("lineno")[:_SHOWN]:
        frame = one.traceback[0]
        lines.append(f"{one.size:>14,} {one.count:>10,}  {frame.filename}:{frame.lineno}")
    return lines


def _counted() -> list[str]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    objects = gc.get_objects()
    for one in objects[:_MAX_OBJECTS]:
        kind: Any = cast("Any", type(one))
        name = f"{kind.__module__}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(one, 0)
    lines = [
        f"objects that the garbage collector knows, without what they contain: {len(objects):,}",
        "(start the worker with PYTHONTRACEMALLOC=1 to see allocations by line)",
        f"{'BYTES':>14} {'OBJECTS':>10}  TYPE",
    ]
    lines += [f"{size:>14,} {counts[name]:>10,}  {name}" for name, size in sizes.most_common(_SHOWN)]
    return lines
