"""Do to a real store what a seed did to the oracle, call by call, and compare every answer.

``python -m tests.simulation.replay --seeds 1000`` prints how many sequences and calls were equal on each
store. Its clock is set to each call's own instant, so that answers must be equal to the microsecond.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any, Final, NamedTuple

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.journal.entries import JournalName, PendingEntry
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadTallyPage
from fairlane.store.contract.inspection import Inspection
from fairlane.store.contract.jobs import Enqueued, EnqueueReply
from fairlane.store.contract.journal import NumberRequest, PendingReply
from tests.oracle.clock import START, DrivenClock
from tests.simulation.seeds import quiet, run_seed, seams
from tests.simulation.server import Call
from tests.stores import STORES, Opener

_UNCOMPARED: Final = frozenset({"cursor", "size"})
"""What is in a cursor, where a page ends, and how many bytes it takes is a store's business."""


class Replay(NamedTuple):
    """How far a sequence went on a store, and the first answer that was another."""

    calls: int
    difference: str = ""


def record(seed: int) -> list[Call]:
    """Run a seed and give what was done to its store; inside `seams`. Empty if the store lost its memory."""
    return run_seed(seed, keeps_calls=True).calls or []


async def replay(calls: list[Call], opener: Opener) -> Replay:
    """Do the same to a store that is opened empty."""
    clock, places = _SetClock(), _Places()
    async with opener(clock) as store:
        for number, call in enumerate(calls):
            clock.at = call.at
            answer, error = await _ask(store, call._replace(request=places.translated(call.request)))
            places.learn(call, answer)
            mine, theirs = _plain(_cut(call, answer)), _plain(_cut(call, call.answer))
            if (mine, error) != (theirs, call.error):
                story = f"call {number}, {call.facet}.{call.verb} at {call.at}: {call.request}"
                said = f"the store says {error or answer}\nthe oracle says {call.error or call.answer}"
                return Replay(number, f"{story}\n{said}")
    return Replay(len(calls))


class _SetClock(DrivenClock):
    """A clock that shows what it was set to."""

    at = START

    def now(self) -> int:
        """Say what it was set to."""
        return self.at


class _Places:
    """The places of entries without a number are a store's business: which of its own is the oracle's."""

    def __init__(self) -> None:
        """Know none."""
        self._own: dict[tuple[JournalName, int], int] = {}

    def learn(self, call: Call, answer: Any) -> None:
        """Compare two lists of entries that wait."""
        if isinstance(answer, PendingReply) and isinstance(call.answer, PendingReply):
            pairs = zip(_by_content(call.answer), _by_content(answer), strict=False)
            self._own |= {(call.request.journal, theirs.place): own.place for theirs, own in pairs}

    def translated(self, request: Any) -> Any:
        """Return a request with the store's own places."""
        if not isinstance(request, NumberRequest):
            return request
        taken = tuple(self._own.get((request.journal, place), place) for place in request.taken)
        return msgspec.structs.replace(request, taken=taken)


def _by_content(reply: PendingReply) -> list[PendingEntry]:
    """Sort entries that wait: those of one step come in any order."""
    return sorted(reply.entries, key=lambda one: (one.at, msgspec.json.encode(one.entry)))


async def _ask(store: Store, call: Call) -> tuple[Any, str]:
    verb = getattr(getattr(store, call.facet), call.verb)
    try:
        return await verb(call.request), ""
    except (FairlaneError, ValueError, LookupError) as error:
        return None, type(error).__name__


def _cut(call: Call, answer: Any) -> Any:
    """Leave out the last step of a full page of entries that wait: which of its entries fit is luck."""
    if not isinstance(answer, PendingReply) or not 0 < call.request.limit <= len(answer.entries):
        return answer
    last = answer.entries[-1].at
    return msgspec.structs.replace(answer, entries=tuple(one for one in answer.entries if one.at != last))


def _plain(answer: Any) -> Any:
    """Return an answer without what stores may choose: cursors, and whether a new record is made yet."""
    if isinstance(answer, EnqueueReply):
        made = tuple(Enqueued(one.job, one.is_created) for one in answer.enqueued)
        answer = msgspec.structs.replace(answer, enqueued=made)
    if isinstance(answer, PendingReply):
        answer = msgspec.structs.replace(
            answer, entries=tuple((one.at, one.entry) for one in _by_content(answer))
        )
    if isinstance(answer, DeadTallyPage):
        return {*answer.tallies}  # in any order
    if isinstance(answer, Inspection):  # settings, remarks and sizes are a store's own
        return (answer.leads, answer.tasks, answer.first_lease_until)
    if isinstance(answer, msgspec.Struct):
        return {
            name: _plain(getattr(answer, name))
            for name in answer.__struct_fields__
            if name not in _UNCOMPARED
        }
    return answer


def main() -> int:
    """Replay what was asked for, print the figures, and fail at any difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replay", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many sequences")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument(
        "--store", action="append", help="a name of tests.stores; all but the oracle if not given"
    )
    said = parser.parse_args()
    names = said.store or [name for name in STORES if name != "oracle"]
    different = 0
    began = time.monotonic()
    equal = dict.fromkeys(names, (0, 0))
    with seams(), quiet():
        sequences = done = 0
        while done < said.seeds:
            seed = said.first + sequences
            sequences += 1
            calls = record(seed)
            if not calls:
                continue
            done += 1
            for name in names:
                found = asyncio.run(replay(calls, STORES[name]))
                if found.difference:
                    different += 1
                    print(f"seed {seed} on {name}: {found.difference[:4000]}", flush=True)
                else:
                    equal[name] = (equal[name][0] + 1, equal[name][1] + found.calls)
    for name, (whole, calls_equal) in equal.items():
        print(f"{name}: {whole} of {done} sequences equal, {calls_equal} calls")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
