"""Let new jobs in: what the script is told of each, and what its answer means (S12-S18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec

from fairlane.model.admission import Refusal, RefusalKind
from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreError
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.moves import born
from fairlane.store.contract.jobs import Created, Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.exchange import Command
from fairlane.store.redis.forms import ITEM
from fairlane.store.redis.rows import STATES, pack, read, to_body
from fairlane.store.redis.scripts import STAGED_LASTS

_PART_MOST: Final = 80
"""How much one script takes in, as `_weight` counts it."""

_ON_DUPLICATE: Final = {"return": 0, "raise": 1, "replace_dead": 2}


async def enqueue(wire: Wire, request: EnqueueRequest) -> EnqueueReply:
    """Store a batch whole, or nothing of it."""
    jobs = request.jobs
    if is_one_part(jobs):
        answer = await wire.run("enqueue", _options(request), _packed(jobs), enqueues=True)
    else:
        answer = await Batch(wire, request).send()
    now, refused, repeats, over, linked = answer
    if refused:
        return EnqueueReply(refused=tuple(_refusal(jobs[one[0]], one) for one in refused))
    earlier = {one[0]: one[1:] for one in repeats}
    links = dict(linked)
    enqueued = (
        _repeated(new, earlier[index]) if index in earlier else _created(new, now, links.get(index))
        for index, new in enumerate(jobs)
    )
    above = (OverLimit(jobs[i].tenant, jobs[i].queue, waiting, limit) for i, waiting, limit in over)
    return EnqueueReply(tuple(enqueued), (), tuple(above))


class Batch:
    """A batch that goes in by several scripts: parts that nobody sees are staged, then published as one.

    From then on no script but `fold.lua` does anything before all of it is in, or out again: so it becomes
    visible at once, and whoever comes next brings it to its end if its sender does not.
    """

    def __init__(self, wire: Wire, request: EnqueueRequest) -> None:
        """Cut it; send nothing yet."""
        self._wire = wire
        self._name = uuid4().hex
        self._parts = list(cut(request.jobs))
        self._publish = ("publish", self._name, len(self._parts), _options(request))
        self._is_published = False

    async def send(self) -> list[Any]:
        """Bring it in, and return what `outcome.lua` says of it.

        From the moment it is published anybody may bring it to its end: an error after that, even a refusal
        by the server (a failover in between), says nothing of its fate.
        """
        try:
            return await self._bring_in()
        except StoreError as error:
            if not self._is_published or isinstance(error, EnqueueUnknown):
                raise
            message = f"the enqueue was published, and then the store failed: {error}"
            raise EnqueueUnknown(message) from error

    def _hear(self, number: int, answer: Any) -> None:
        if number == len(self._parts) and answer and not isinstance(answer, Exception):
            self._is_published = True

    async def _bring_in(self) -> list[Any]:
        """Send everything at once, what brings it to its end as well.

        Others would have to wait for that anyway, and the server need not wait for us, who make the next
        batch meanwhile.
        """
        answers = await self._wire.pour(self._all, self._hear)
        published, answer = answers[len(self._parts)], answers[-1]
        if published is None:
            published = await self._wire.run(*self._publish, enqueues=True)
            self._hear(len(self._parts), published)
        if not published:
            message = f"sending it took longer than {STAGED_LASTS // 1_000} seconds; nothing was stored"
            raise StoreBusy(message)
        if not answer:
            await self._wire.fold(enqueues=True)
            answer = await self._wire.run("outcome", self._name, enqueues=True)
        if not answer:
            message = "the enqueue was sent and its answer came too late; repeat it under the same ids"
            raise EnqueueUnknown(message)
        return list(answer)

    def _staged(self) -> Iterator[Command]:
        for number, part in enumerate(self._parts, 1):
            key = self._wire.keys("staged", self._name, str(number))
            yield "SET", key, _packed(part), "PX", STAGED_LASTS

    def _all(self) -> Iterator[Command]:
        yield from self._staged()
        yield self._wire.words(*self._publish)
        for _ in self._parts:
            yield self._wire.words("fold")
        yield self._wire.words("outcome", self._name)


def cut(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Cut a batch into parts that one script takes in."""
    first = weight = 0
    strands: set[tuple[str, str]] = set()
    for number, new in enumerate(jobs):
        strand = (new.tenant, new.task)
        weight += _weight(new) + (strand not in strands)
        if weight > _PART_MOST and number > first:
            yield jobs[first:number]
            first, weight, strands = number, _weight(new) + 1, set()
        strands.add(strand)
    yield jobs[first:]


def is_one_part(jobs: Sequence[NewJob]) -> bool:
    """Say whether one script takes them all in."""
    return len(jobs) <= _PART_MOST and len(next(cut(jobs))) == len(jobs)


def _weight(new: NewJob) -> int:
    """Say how much a script has to do for a job beside what it does for its strand: 1 for a plain one."""
    marks = (new.idempotency_key is not None) + (new.dedup_key is not None) + (new.correlation_id is not None)
    return 1 + marks + len(new.payload) // 1_000


def _options(request: EnqueueRequest) -> bytes:
    return pack({"must_be_declared": request.must_be_declared, "is_repeated": request.is_repeated})


def _packed(jobs: Iterable[NewJob]) -> bytes:
    """Give jobs as scripts take them in: one after the other."""
    return b"".join(map(_item, jobs))


def _item(new: NewJob) -> bytes:
    given = new.correlation_id
    correlation = "" if given is None or given == str(new.id) else given
    numbers = ITEM.pack_numbers(
        new.id.bytes,
        new.priority,
        -1 if new.run_at is None else max(0, new.run_at),
        new.delay,
        0 if new.expires_at is None else new.expires_at,
        -1 if new.expires_in is None else new.expires_in,
        -1 if new.timeout is None else new.timeout,
        _ON_DUPLICATE[new.on_duplicate],
        new.dedup_until == "started",
    )
    names = f"{new.tenant}\0{new.queue}\0{new.task}\0{new.idempotency_key or ''}\0"
    texts = f"{names}{new.fingerprint.hex()}\0{new.dedup_key or ''}\0{correlation}\0"
    if texts.count("\0") != ITEM.texts:
        message = "a name or label holds a NUL, which ends a text here (S3)"
        raise ValueError(message)
    body = to_body(new)
    return b"".join((numbers, texts.encode(), len(body).to_bytes(4), body))


def _refusal(new: NewJob, answer: list[Any]) -> Refusal:
    index, kind, detail, existing, waiting, limit = answer
    return Refusal(
        index,
        RefusalKind(kind.decode()),
        new.tenant,
        new.queue,
        detail.decode(),
        UUID(bytes=existing) if existing else None,
        waiting,
        limit,
    )


def _created(new: NewJob, now: Instant, correlation: bytes | None) -> Created:
    """Give a job that came in; one that replaces a dead one has its correlation id (S13)."""
    if correlation is None:
        return Created(new, now)
    return Created(msgspec.structs.replace(new, correlation_id=correlation.decode()), now)


def _repeated(new: NewJob, kept: Sequence[Any]) -> Enqueued:
    job = _earlier(new, *kept)
    return Enqueued(job, is_created=job.id == new.id)


def _earlier(new: NewJob, existing: bytes, *kept: Any) -> JobRecord:
    """Give the job that answers for a repeat, or its husk if only the key is left (S13)."""
    match kept:
        case (bytes() as head, bytes() as body, bytes() as attempts, result):
            return read(existing, head, body, attempts, result).job
        case (state, settled_at):
            return _husk(new, existing, state, settled_at)
    message = f"the answer for a repeated enqueue has {len(kept)} parts"
    raise AssertionError(message)


def _husk(new: NewJob, existing: bytes, state: int, settled_at: Instant) -> JobRecord:
    return msgspec.structs.replace(
        born(new, settled_at),
        id=UUID(bytes=existing),
        state=STATES[state],
        because=None,
        settled_at=settled_at,
    )
