"""Enqueue the jobs of slots, each alone: one that is refused stops no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, Self

from fairlane.app.enqueue.refusals import refusal_error
from fairlane.model.job import NewJob
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import MAX_BATCH_BYTES, MAX_BATCH_SIZE, EnqueueRequest

OVERLAP: Final = "the job of an earlier slot is not done"

_ROOM: Final = MAX_BATCH_BYTES // 2
"""How many bytes of contents one request has: names and tags come on top."""


class SlotAnswer(NamedTuple):
    """What became of a slot, and why."""

    state: Literal["enqueued", "skipped", "failed"]
    because: str = ""


class MadeJobs(NamedTuple):
    """How many slots or tenants have a job, and how many have none."""

    enqueued: int = 0
    skipped: int = 0
    failed: int = 0

    @classmethod
    def of(cls, answers: Iterable[SlotAnswer]) -> Self:
        """Count answers."""
        states = [answer.state for answer in answers]
        return cls(states.count("enqueued"), states.count("skipped"), states.count("failed"))

    def plus(self, other: MadeJobs) -> MadeJobs:
        """Return the sum."""
        return MadeJobs(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


async def make_jobs(store: Store, jobs: Sequence[NewJob], *, must_be_declared: bool) -> list[SlotAnswer]:
    """Enqueue jobs of slots, and return what became of each, in order.

    Each is marked as a repeat: one that is there already, in any home, answers for itself (S15), so that
    doing it again after a crash makes no second job.
    """
    answers: list[SlotAnswer] = []
    for part in _parts(jobs):
        answers += await _make_part(store, part, must_be_declared=must_be_declared)
    return answers


async def _make_part(store: Store, jobs: Sequence[NewJob], *, must_be_declared: bool) -> list[SlotAnswer]:
    answers: dict[int, SlotAnswer] = {}
    while len(answers) < len(jobs):
        left = [number for number in range(len(jobs)) if number not in answers]
        sent = tuple(jobs[number] for number in left)
        request = EnqueueRequest(
            scope=Scope.all(), jobs=sent, must_be_declared=must_be_declared, is_repeated=True
        )
        reply = await store.jobs.enqueue(request)
        for refusal in reply.refused:  # nothing is stored then: the others are sent again without it
            answers[left[refusal.index]] = SlotAnswer("failed", str(refusal_error([refusal], sent)))
        for number, enqueued in zip(left, reply.enqueued, strict=False):
            answers[number] = (
                SlotAnswer("enqueued") if enqueued.is_created else SlotAnswer("skipped", OVERLAP)
            )
    return [answers[number] for number in range(len(jobs))]


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    part: list[NewJob] = []
    size = 0
    for job in jobs:
        more = len(job.payload) + len(job.metadata)
        if part and (size + more > _ROOM or len(part) == MAX_BATCH_SIZE):
            yield part
            part, size = [], 0
        part.append(job)
        size += more
    if part:
        yield part
