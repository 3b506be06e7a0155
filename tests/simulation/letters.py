"""What people did about dead letters: each runs again once at most, and what was decided stands (S75).

Knows only the answers that the store gave, none of its books.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from fairlane.model.review import ReviewAction
from fairlane.store.contract.dead import ReprocessReply, ReprocessRequest, ReviewReply

_DECISIONS: Final = frozenset[ReviewAction]({"resolve", "ignore", "discard"})


class LettersCheck:
    """Remembers which letters were discarded, and which job runs in the place of which."""

    def __init__(self) -> None:
        """Begin with no letter."""
        self._discarded: set[UUID] = set()
        self._runs: dict[UUID, UUID] = {}

    def reviewed(self, action: ReviewAction, replies: Sequence[ReviewReply]) -> Iterator[str]:
        """Note decisions; say which were taken about a letter whose decision stands."""
        for one in replies:
            if one.answer != "done" or action not in _DECISIONS:
                continue
            if one.id in self._runs:
                yield f"{action} of dead letter {one.id}, in whose place job {self._runs[one.id]} runs"
            if one.id in self._discarded:
                yield f"{action} of dead letter {one.id}, which was discarded"
            if action == "discard":
                self._discarded.add(one.id)

    def reprocessed(self, request: ReprocessRequest, replies: Sequence[ReprocessReply]) -> Iterator[str]:
        """Note new jobs; say which letters should not have one, or not another one."""
        for item, one in zip(request.items, replies, strict=True):
            run = self._runs.get(one.id)
            if one.answer == "reprocessed":
                if run is not None:
                    yield f"dead letter {one.id} runs again as {one.job}, and already as {run}"
                if one.id in self._discarded:
                    yield f"dead letter {one.id} runs again as {one.job}, though it was discarded"
                if one.job != item.job.id:
                    yield f"dead letter {one.id} runs again as {one.job}, asked for was {item.job.id}"
                self._runs[one.id] = item.job.id
            elif one.answer == "already" and one.job != run:
                yield f"dead letter {one.id} is said to run as {one.job}, and runs as {run}"
