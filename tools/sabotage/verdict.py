"""Decide whether a patch was caught, from the results of its tests. Runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from tools.sabotage.patch import Patch
from tools.sabotage.scratch import PytestRun
from tools.sabotage.witness import RecordedTest


class RedTest(msgspec.Struct, frozen=True):
    """A test that went red, on which stores, and with which errors."""

    test: str
    stores: tuple[str, ...]
    errors: tuple[str, ...]


class PatchVerdict(msgspec.Struct, frozen=True):
    """The verdict on one patch: caught if `why` is empty.

    `patch` is the digest of the patch that was tried, `commit` the commit that it was tried at.
    """

    name: str
    promise: str
    rules: tuple[str, ...]
    concerns: str
    file: str
    seconds: float = 0.0
    red: tuple[RedTest, ...] = ()
    why: str = ""
    patch: str = ""
    commit: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether every named test went red wherever it had to."""
        return not self.why


def judge(patch: Patch, ran: PytestRun, green: Collection[str], seconds: float) -> PatchVerdict:
    """Require of each named test that it ran, is green without the patch, and red on each store."""
    reds: list[RedTest] = []
    whys: list[str] = []
    for test in patch.tests:
        seen = [one for one in ran.seen if one.test == test]
        why = _complaint(test, seen, ran, is_green_before=test in green)
        if why:
            whys.append(why)
        else:
            errors = {error for one in seen for error in one.errors}
            reds.append(RedTest(test, tuple(sorted({one.store for one in seen})), tuple(sorted(errors))))
    return msgspec.structs.replace(unfit(patch, "; ".join(whys)), red=tuple(reds), seconds=round(seconds, 1))


def unfit(patch: Patch, why: str) -> PatchVerdict:
    """Return the verdict on a patch that could not be tried."""
    fields = (patch.name, patch.promise, patch.rules, patch.concerns, patch.file)
    return PatchVerdict(*fields, why=why, patch=patch.digest)


def _complaint(test: str, seen: list[RecordedTest], ran: PytestRun, *, is_green_before: bool) -> str:
    """Return why a test does not prove anything; an empty text if it does."""
    name = test.rpartition("::")[2]
    if not is_green_before:
        return f"{name} is not green without the patch either"
    if ran.is_hung:
        return f"{name}, or a test beside it, hung"
    if not seen:
        return f"{name} did not run: {ran.last_line}"
    crippled = sorted({error for one in seen if one.is_crippled for error in one.errors})
    if crippled:
        return f"{name} met {', '.join(crippled)}: the patch breaks the source, not the promise"
    green = sorted({one.store for one in seen} - {one.store for one in seen if one.errors})
    return f"{name} stayed green{_on(green)}" if green else ""


def _on(stores: list[str]) -> str:
    return f" on {', '.join(stores)}" if any(stores) else ""


def green_tests(seen: Sequence[RecordedTest]) -> set[str]:
    """Return the tests that ran and never failed."""
    return {one.test for one in seen} - {one.test for one in seen if one.errors}
