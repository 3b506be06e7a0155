"""Divide the slots of lanes among the processes of one worker command (S47). Starts no process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Lane, Share


def divide_lanes(lanes: Sequence[Lane], index: int, count: int) -> list[Lane]:
    """Return the part of each lane that process `index` (from 0) of `count` has.

    All parts together have exactly the slots of the lane, and what a queue may use of them (`max_slots`).
    What does not divide evenly goes to the next processes in turn, from lane to lane, so that no process has
    more than one slot more than another. `ConfigError` if a process would have no slot, or none for any
    queue.

    >>> lanes = [Lane("fast", 3, ["mail"]), Lane("main", 16, {"import": Share(max_slots=2), "sync": 1})]
    >>> [[lane.slots for lane in divide_lanes(lanes, index, 2)] for index in range(2)]
    [[2, 8], [1, 8]]
    """
    first, found = 0, list[Lane]()
    for lane in lanes:
        found.append(lane if count == 1 else _part(lane, (index - first) % count, count))
        first += lane.slots % count
    return found


def _part(lane: Lane, turn: int, count: int) -> Lane:
    slots = _divided(lane.slots, turn, count)
    # The smallest part decides, so that every process refuses the same lanes with the same words.
    if lane.slots < count:
        raise _too_many(lane, count, f"has {lane.slots} slots")
    shares = {queue: _share(share, turn, count) for queue, share in lane.shares().items()}
    if not any(_share(share, count - 1, count) for share in lane.shares().values()):
        raise _too_many(lane, count, "has only queues that may use fewer slots (max_slots)")
    return replace(
        lane,
        slots=slots,
        headroom=min(slots - 1, _divided(lane.headroom_slots, turn, count)),
        prefetch=None if lane.prefetch is None else _divided(lane.prefetch, turn, count),
        queues={queue: share for queue, share in shares.items() if share is not None},
    )


def _share(share: Share, turn: int, count: int) -> Share | None:
    """Return a queue's share in one process; None if it may use no slot there."""
    if share.max_slots is None:
        return share
    most = _divided(share.max_slots, turn, count)
    return replace(share, max_slots=most) if most else None


def _divided(number: int, turn: int, count: int) -> int:
    return number // count + (turn < number % count)


def _too_many(lane: Lane, count: int, why: str) -> ConfigError:
    message = f"lane {lane.name} {why}, and {count} processes share them: each needs one."
    return ConfigError(message, key="worker.processes", allowed="fewer processes, or more slots")
