"""Try patches, some at a time, each in its own copy of the tree. Prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tools.sabotage.patch import MisfitError, Patch, judged
from tools.sabotage.scratch import ALL_TOO_LONG, ScratchTree
from tools.sabotage.verdict import PatchVerdict, green_tests, judge, unfit


def sabotage(
    tree: Path,
    patches: Sequence[Patch],
    known: frozenset[str],
    tell: Callable[[PatchVerdict], None],
    at_once: int = 2,
) -> list[PatchVerdict]:
    """Try all patches on copies of a tree; return the verdicts in the order of the list.

    First all named tests run on the unchanged tree: a test that is not green there proves nothing.
    """
    with TemporaryDirectory(prefix="sabotage-") as folder, ThreadPoolExecutor(at_once) as pool:
        copies: SimpleQueue[ScratchTree] = SimpleQueue()
        for number in range(at_once):
            copies.put(ScratchTree(tree, Path(folder, str(number))))
        tests = sorted({test for patch in patches for test in patch.tests})
        parts = [tests[start::at_once] for start in range(at_once) if tests[start::at_once]]
        whole = pool.map(lambda part: _whole(copies, part, known), parts)
        green = set[str]().union(*whole)
        return list(pool.map(lambda patch: _one(copies, patch, known, green, tell), patches))


def _whole(copies: SimpleQueue[ScratchTree], tests: Iterable[str], known: frozenset[str]) -> set[str]:
    copy = copies.get()
    try:
        ran = copy.run(tests, judged(known), known, patience=ALL_TOO_LONG)
    finally:
        copies.put(copy)
    if not ran.seen:
        raise MisfitError(f"the named tests cannot be run: {ran.last_line}")
    return green_tests(ran.seen)


def _one(
    copies: SimpleQueue[ScratchTree],
    patch: Patch,
    known: frozenset[str],
    green: set[str],
    tell: Callable[[PatchVerdict], None],
) -> PatchVerdict:
    copy = copies.get()
    started = time.monotonic()
    try:
        with copy.broken(patch):
            ran = copy.run(patch.tests, patch.stores(known), known)
        verdict = judge(patch, ran, green, time.monotonic() - started)
    except MisfitError as error:
        verdict = unfit(patch, str(error))
    finally:
        copies.put(copy)
    tell(verdict)
    return verdict
