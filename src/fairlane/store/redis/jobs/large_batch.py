"""Enqueue a batch that is too large for one script: stage its parts, publish them as one, bring them in.

Once it is published, no script but `jobs/batch_step.lua` does anything until all of it is in, or out again.
So it becomes visible at once, and the next client finishes it if its sender does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError
from fairlane.model.job import NewJob
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.pipeline import Command
from fairlane.store.redis.records.entries import encode_operation
from fairlane.store.redis.records.job import encode_new_jobs, pack
from fairlane.store.redis.script_loader import STAGED_TTL_MS

_MAX_WEIGHT: Final = 80
"""How much one script stores, as `_weight` counts it."""


def encode_options(request: EnqueueRequest) -> bytes:
    """Pack what holds for the whole batch."""
    return pack(
        {
            "must_be_declared": request.must_be_declared,
            "is_repeated": request.is_repeated,
            "operation": encode_operation(request.operation),
        }
    )


def is_one_part(jobs: Sequence[NewJob]) -> bool:
    """Whether one script stores them all."""
    return len(jobs) <= _MAX_WEIGHT and len(next(split(jobs))) == len(jobs)


def split(jobs: Sequence[NewJob], most: int = _MAX_WEIGHT) -> Iterator[Sequence[NewJob]]:
    """Split a batch into parts of which one script stores each."""
    first = weight = 0
    strands: set[tuple[str, str]] = set()
    for number, new in enumerate(jobs):
        strand = (new.tenant, new.task)
        weight += _weight(new) + (strand not in strands)
        if weight > most and number > first:
            yield jobs[first:number]
            first, weight, strands = number, _weight(new) + 1, set()
        strands.add(strand)
    yield jobs[first:]


def _weight(new: NewJob) -> int:
    """Return how much a script has to do for a job, beside its strand: 1 for a plain one."""
    extras = (
        (new.idempotency_key is not None) + (new.dedup_key is not None) + (new.correlation_id is not None)
    )
    return 1 + extras + len(new.payload) // 1_000


class LargeBatch:
    """A batch on its way in."""

    def __init__(self, client: RedisClient, request: EnqueueRequest) -> None:
        """Split it; send nothing yet."""
        self._client = client
        self._name = uuid4().hex
        self._parts = list(split(request.jobs))
        self._publish = ("jobs/batch_publish", self._name, len(self._parts), encode_options(request))
        self._is_published = False

    async def send(self) -> list[Any]:
        """Bring it in, and return what `jobs/batch_result.lua` says of it.

        Once it is published anybody may finish it: an error after that, even a refusal by the server (a
        failover in between), says nothing about its fate.
        """
        try:
            return await self._bring_in()
        except StoreError as error:
            if not self._is_published or isinstance(error, EnqueueUnknown):
                raise
            message = f"the enqueue was published, and then the store failed: {error}"
            raise EnqueueUnknown(message) from error

    async def _bring_in(self) -> list[Any]:
        """Send everything at once, also the steps that bring it in.

        Others would wait for these steps anyway, and the server need not wait for us: we build the next batch
        meanwhile.
        """
        replies = await self._client.pipeline_all(self._commands, self._on_reply)
        published, result = replies[len(self._parts)], replies[-1]
        if published is None:
            published = await self._client.run(*self._publish, is_enqueue=True)
            self._on_reply(len(self._parts), published)
        if not published:
            message = f"sending it took longer than {STAGED_TTL_MS // 1_000} seconds; nothing was stored"
            raise StoreBusy(message)
        if not result:
            await self._client.finish_batch(is_enqueue=True)
            result = await self._client.run("jobs/batch_result", self._name, is_enqueue=True)
        if not result:
            message = "the enqueue was sent and its answer came too late; repeat it under the same ids"
            raise EnqueueUnknown(message)
        return list(result)

    def _on_reply(self, number: int, reply: Any) -> None:
        if number == len(self._parts) and reply and not isinstance(reply, Exception):
            self._is_published = True

    def _stage(self) -> Iterator[Command]:
        for number, part in enumerate(self._parts, 1):
            key = self._client.keys("staged", self._name, str(number))
            yield "SET", key, encode_new_jobs(part), "PX", STAGED_TTL_MS

    def _commands(self) -> Iterator[Command]:
        yield from self._stage()
        yield self._client.command(*self._publish)
        for _ in self._parts:
            yield self._client.command("jobs/batch_step")
        yield self._client.command("jobs/batch_result", self._name)
