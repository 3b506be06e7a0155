"""One lane of a worker: its slots, what is held in them, and what waits to be settled. Asks no store.

A lane may have two turns with the store under way, each for half of its slots: the store works on one while
the handlers of the other run. A lane of several queues has one, since how they share the slots is decided by
what the claim before brought; so has one with headroom, which is a part of all free slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import instance, is_listed, shown
from fairlane.model.errors import ConfigError
from fairlane.model.instants import Micros
from fairlane.model.job import Claim, Settlement
from fairlane.model.lanes import LaneClock, Wishes
from fairlane.model.policy import DEFAULT_SLOTS, Lane
from fairlane.runtime.loops import Bell
from fairlane.worker.attempt import Attempt


class Done(NamedTuple):
    """An attempt that is over, and how it is to be settled."""

    attempt: Attempt
    settlement: Settlement


class Desk:
    """A lane at work. A slot is taken from the claim until the settlement is accepted (S47).

    `is_hungry` says that there may be something to claim: nobody has said otherwise since. `asking` is how
    many turns are under way, whose answers nobody knows.
    """

    def __init__(self, lane: Lane, turns_at_once: int = 1) -> None:
        self.lane = lane
        self.queues = tuple(lane.shares())
        self.bell = Bell()
        self.done: list[Done] = []
        self.is_hungry = True
        self.turns = turns_at_once if len(self.queues) == 1 and not lane.headroom_slots else 1
        self.asking = 0
        self.due_at: Micros | None = None
        self._clock = LaneClock(lane)
        self._running: Counter[str] = Counter()
        self._taken = 0
        self._promised = 0

    @property
    def free(self) -> int:
        """How many slots nothing is held in."""
        return self.lane.slots - self._taken

    @property
    def room(self) -> int:
        """How many slots one turn may fill, once what is done is settled: that comes first in the same call.

        What the other turn may fill is not free.
        """
        free = self.free - self._promised + len(self.done)
        return min(free, -(-self.lane.slots // self.turns))

    def wishes(self) -> Wishes:
        """Say what to ask for now, as if what is done were settled and what was asked for had come."""
        done = Counter(one.attempt.claim.job.queue for one in self.done)
        promised = Counter({self.queues[0]: self._promised})
        return self._clock.wishes(self.room, self._running + promised - done)

    @contextmanager
    def turn(self, batch: int, wanted: int) -> Generator[None]:
        """Keep the slots that a turn may fill beyond those it has settled, as long as it is under way."""
        promised = max(0, wanted - batch)
        self.asking += 1
        self._promised += promised
        try:
            yield
        finally:
            self.asking -= 1
            self._promised -= promised

    def take(self, claims: Sequence[Claim]) -> None:
        """Give each of these claims a slot."""
        starts = Counter(claim.job.queue for claim in claims)
        self._running += starts
        self._taken += len(claims)
        self._clock.started(starts)

    def release(self, attempt: Attempt) -> None:
        """Have the slot of an attempt back."""
        self._running[attempt.claim.job.queue] -= 1
        self._taken -= 1

    def wake(self) -> None:
        """Look for work again, now."""
        self.is_hungry = True
        self.bell.ring()


def lanes_of(app: Fairlane, wanted: Sequence[Lane | str] | None) -> list[Lane]:
    """Choose the lanes of a worker: those given, else those declared, else one over all queues (S47)."""
    declared = {lane.name: lane for lane in app.settings.lanes} or {"main": _main(app)}
    if wanted is None:
        return list(declared.values())
    _check_listed(wanted)
    for name in wanted:
        instance("lanes", name, (str, Lane), "names and Lane(...)")
        if isinstance(name, str) and name not in declared:
            raise ConfigError(f"there is no lane {name}.", key="lanes", allowed=", ".join(declared))
    return [declared[one] if isinstance(one, str) else one for one in wanted]


def _check_listed(wanted: object) -> None:
    if not is_listed(wanted):
        raise ConfigError(f"it is {shown(wanted)}.", key="lanes", allowed="a list of names or of Lane(...)")


def _main(app: Fairlane) -> Lane:
    queues = dict.fromkeys([*app.settings.queues, *(task.queue for task in app.client.registry)])
    return Lane("main", DEFAULT_SLOTS, tuple(queues))
