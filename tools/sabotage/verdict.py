"""Decide whether a patch was caught, from what its tests did. Runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from tools.sabotage.patch import Patch
from tools.sabotage.scratch import Ran
from tools.sabotage.witness import Seen


class Red(msgspec.Struct, frozen=True):
    """A test that went red, the stores on which it did, and the errors that told."""

    test: str
    stores: tuple[str, ...]
    errors: tuple[str, ...]


class Verdict(msgspec.Struct, frozen=True):
    """What became of one patch: caught if `why` is empty."""

    name: str
    promise: str
    rules: tuple[str, ...]
    concerns: str
    file: str
    seconds: float = 0.0
    red: tuple[Red, ...] = ()
    why: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether every named test went red wherever it had to."""
        return not self.why


def judge(patch: Patch, ran: Ran, green: Collection[str], seconds: float) -> Verdict:
    """Demand of each named test that it ran, is green without the patch, and is red on each store."""
    reds: list[Red] = []
    whys: list[str] = []
    for test in patch.tests:
        seen = [one for one in ran.seen if one.test == test]
        why = _complaint(test, seen, ran, is_green_before=test in green)
        if why:
            whys.append(why)
        else:
            errors = {error for one in seen for error in one.errors}
            reds.append(Red(test, tuple(sorted({one.store for one in seen})), tuple(sorted(errors))))
    return msgspec.structs.replace(unfit(patch, "; ".join(whys)), red=tuple(reds), seconds=round(seconds, 1))


def unfit(patch: Patch, why: str) -> Verdict:
    """Give the verdict on a patch that could not be tried."""
    return Verdict(patch.name, patch.promise, patch.rules, patch.concerns, patch.file, why=why)


def _complaint(test: str, seen: list[Seen], ran: Ran, *, is_green_before: bool) -> str:
    """Say why a test does not prove anything; nothing if it does."""
    name = test.rpartition("::")[2]
    if not is_green_before:
        return f"{name} is not green without the patch either"
    if ran.is_hung:
        return f"{name} hung, or one beside it"
    if not seen:
        return f"{name} did not run: {ran.last_word}"
    crippled = sorted({error for one in seen if one.is_crippled for error in one.errors})
    if crippled:
        return f"{name} met {', '.join(crippled)}: the patch breaks the source, not the promise"
    green = sorted({one.store for one in seen} - {one.store for one in seen if one.errors})
    return f"{name} stayed green{_on(green)}" if green else ""


def _on(stores: list[str]) -> str:
    return f" on {', '.join(stores)}" if any(stores) else ""


def green_tests(seen: Sequence[Seen]) -> set[str]:
    """Name the tests that ran and never failed."""
    return {one.test for one in seen} - {one.test for one in seen if one.errors}
