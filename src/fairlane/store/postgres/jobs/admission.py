"""Admit a batch that something may refuse (S13-S18): gather facts, let `admit` decide, write the jobs.

Runs in the transaction of its runner, and only appends there. The keys of a batch are taken first, in their
order: it waits for a key that another open transaction has taken, and for nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import over_limit
from fairlane.model.lifecycle.admission import (
    Admission,
    AdmissionFacts,
    Admitted,
    KeyHolder,
    Refusal,
    Repeat,
    admit,
    linked_to_dead,
)
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import NO_LIMITS, Limits
from fairlane.model.scope import SYSTEM
from fairlane.store.audit_entries import created_entries
from fairlane.store.contract.jobs import Enqueued, EnqueueReply, EnqueueRequest, OverLimit
from fairlane.store.postgres.connection import StatementRunner
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.rows import Row, plain_uuid, read_record, sent_values
from fairlane.store.postgres.statements import load

Key: TypeAlias = tuple[str, ...]

K = TypeVar("K", bound=Key)

_MAX_TRIES: Final = 100
"""How often a key is tried that others take and free in between: a transaction must not go on forever."""


class BatchRefusedError(Exception):
    """Carries the reply out of a transaction or savepoint, which gives back the keys taken."""

    def __init__(self, reply: EnqueueReply) -> None:
        """Keep the reply."""
        super().__init__()
        self.reply = reply


class IdRaceError(Exception):
    """A job of the same id was committed meanwhile: begin again."""


class _Decided(NamedTuple):
    """What was decided about one item, and how many jobs of its tenant wait then."""

    new: NewJob
    admission: Admission
    waiting: int

    @property
    def over(self) -> OverLimit | None:
        """The waiting limit that it exceeds and that only warns (S17)."""
        limit = self.admission.over if isinstance(self.admission, Admitted) else None
        return None if limit is None else OverLimit(self.new.tenant, self.new.queue, self.waiting, limit)


def tenants_to_check(request: EnqueueRequest) -> list[str]:
    """Return the tenants that must be declared (S7)."""
    if not request.must_be_declared:
        return []
    return sorted({new.tenant for new in request.jobs} - {SYSTEM})


class BatchAdmission:
    """One batch while it is decided and written."""

    def __init__(
        self,
        runner: StatementRunner,
        schema: str,
        now: Instant | None,
        request: EnqueueRequest,
        *,
        is_limited: bool = True,
    ) -> None:
        """Begin without any facts. Unless it `is_limited`, waiting limits do not count."""
        self._runner = runner
        self._schema = schema
        self._is_limited = is_limited
        self._sql = load("enqueue", schema)
        self._find = load("find", schema)
        self._asked_at = now
        self._request = request
        self._now: Instant = 0
        self._jobs: dict[UUID, JobRecord] = {}  # those that answer an item: of this batch, or from before
        self._admitted: list[NewJob] = []
        self._keys: dict[Key, KeyHolder] = {}
        self._dedup: dict[Key, UUID] = {}
        self._tombstones: dict[Key, tuple[State, Instant]] = {}
        self._dead: dict[UUID, JobRecord] = {}  # those that an item may replace
        self._replaced: set[Key] = set()
        self._taken: dict[Key, UUID] = {}
        self._taken_dedup: dict[Key, UUID] = {}
        self._waiting: dict[tuple[str, str], int] = {}
        self._queue_waiting: dict[str, int] = {}

    async def run(self) -> EnqueueReply:
        """Write the batch and return its reply; `BatchRefusedError` if any item is refused.

        Appends warnings of exceeded limits, and what the request's operation has made.
        """
        decided = await self._decide()
        admissions = [one.admission for one in decided]
        refused = tuple(one for one in admissions if isinstance(one, Refusal))
        if refused:
            raise BatchRefusedError(EnqueueReply(refused=refused))
        await self._find_earlier({one.existing for one in admissions if isinstance(one, Repeat)})
        await self._write()
        over = [(one.over, one.new) for one in decided if one.over is not None]
        await append_entries(self._runner, self._schema, self._now, "events", _warnings(over))
        made = created_entries(self._request.operation, (self._jobs[new.id] for new in self._admitted))
        await append_entries(self._runner, self._schema, self._now, "audit", made)
        answers = tuple(self._answer(one.new, one.admission) for one in decided)
        return EnqueueReply(answers, (), tuple(one for one, _ in over))

    async def run_each(self) -> tuple[Admission, ...]:
        """Write the items that are admitted, whatever becomes of the others; return what became of each."""
        decided = await self._decide()
        await self._write()
        return tuple(one.admission for one in decided)

    async def _decide(self) -> list[_Decided]:
        await self._take_keys()
        rows = await self._read_facts()
        decided = []
        for index, (new, row) in enumerate(zip(self._request.jobs, rows, strict=True)):
            admission = admit(index, new, self._facts(new, row), repeated=self._request.is_repeated)
            waiting = self._note_admitted(new, admission) if isinstance(admission, Admitted) else 0
            decided.append(_Decided(new, admission, waiting))
        return decided

    # ── facts ─────────────────────────────────────────────────────────────────

    async def _take_keys(self) -> None:
        """Take each key, or find its holder. A key that is freed between the two looks is tried again."""
        keyed = [new for new in self._request.jobs if new.idempotency_key is not None]
        firsts = {(new.tenant, str(new.idempotency_key)): new for new in reversed(keyed)}
        replacing = {
            (new.tenant, str(new.idempotency_key)) for new in keyed if new.on_duplicate == "replace_dead"
        }
        for open_keys in _untaken(firsts, self._taken, self._keys):
            values = [(*key, firsts[key].id, firsts[key].fingerprint) for key in open_keys]
            for tenant, key in await self._fetch_for(self._sql.take_idempotency_keys, values):
                self._taken[tenant, key] = firsts[tenant, key].id
            others = [key for key in open_keys if key not in self._taken]
            for tenant, key, id, fingerprint, state, settled_at in await self._fetch_for(
                self._sql.key_holders, others
            ):
                is_dead = state == State.DEAD
                self._keys[tenant, key] = KeyHolder(plain_uuid(id), bytes(fingerprint), is_dead)
                if state is not None:
                    self._tombstones[tenant, key] = (State(state), settled_at)
            await self._lock_dead([key for key in others if key in replacing])
        single = [new for new in self._request.jobs if new.dedup_key is not None]
        ids = {(new.tenant, new.task, str(new.dedup_key)): new.id for new in reversed(single)}
        for open_dedup in _untaken(ids, self._taken_dedup, self._dedup):
            for tenant, task, key in await self._fetch_for(
                self._sql.take_dedup_keys, [(*one, ids[one]) for one in open_dedup]
            ):
                self._taken_dedup[tenant, task, key] = ids[tenant, task, key]
            rest = [key for key in open_dedup if key not in self._taken_dedup]
            for tenant, task, key, id in await self._fetch_for(self._sql.dedup_holders, rest):
                self._dedup[tenant, task, key] = plain_uuid(id)

    async def _lock_dead(self, keys: Sequence[Key]) -> None:
        """Lock the keys of dead jobs that may be replaced, and read these jobs.

        A key that was replaced or freed meanwhile has no known holder any more: it is tried again.
        """
        dead = [key for key in keys if key in self._keys and self._keys[key].is_dead]
        held = {(tenant, key) for tenant, key in await self._fetch_for(self._sql.lock_dead_keys, dead)}
        for key in dead:
            if key not in held:
                del self._keys[key]
        ids = sorted(self._keys[key].id for key in dead if key in held)
        for row in await self._runner.fetch(self._find.by_id, ids) if ids else ():
            job = read_record(row)
            self._dead[job.id] = job

    async def _fetch_for(self, statement: str, keys: Sequence[Sequence[Any]]) -> Sequence[Row]:
        return await self._runner.fetch(statement, *_columns(keys)) if keys else ()

    async def _read_facts(self) -> Sequence[Row]:
        places = _columns((new.id, new.tenant, new.queue, new.task) for new in self._request.jobs)
        known = tenants_to_check(self._request)
        rows = await self._runner.fetch(self._sql.admission_facts, self._asked_at, known, *places)
        self._now = rows[0][0]
        return rows

    def _facts(self, new: NewJob, row: Row) -> AdmissionFacts:
        _, owner, is_known, closed, limit, on_full, waiting, max_waiting, queue_waiting = row
        if new.id in self._jobs:
            owner = self._jobs[new.id].tenant
        place = (new.queue, new.tenant)
        limits = NO_LIMITS
        if not self._is_limited:
            max_waiting = None
        elif limit is not None:
            limits = Limits(waiting=limit, on_full=on_full)
        return AdmissionFacts(
            is_tenant_known=is_known,
            closed=closed,
            same_id=None if owner is None else new.id,
            is_id_foreign=owner is not None and owner != new.tenant,
            same_key=self._keys.get((new.tenant, str(new.idempotency_key))),
            same_dedup=self._dedup.get((new.tenant, new.task, str(new.dedup_key))),
            waiting=self._waiting.setdefault(place, int(waiting)),
            limits=limits,
            queue_waiting=self._queue_waiting.setdefault(new.queue, int(queue_waiting)),
            max_waiting=max_waiting,
        )

    # ── writing ───────────────────────────────────────────────────────────────

    def _note_admitted(self, new: NewJob, admitted: Admitted) -> int:
        """Note an admitted job for the items after it; return how many jobs of its tenant wait then."""
        if admitted.replaces is not None:
            self._replaced.add((new.tenant, str(new.idempotency_key)))
            new = linked_to_dead(new, self._dead.get(admitted.replaces))
        self._jobs[new.id] = new_record(new, self._now)
        self._admitted.append(new)
        if new.idempotency_key is not None:
            self._keys[new.tenant, new.idempotency_key] = KeyHolder(new.id, new.fingerprint)
        if new.dedup_key is not None:
            self._dedup[new.tenant, new.task, new.dedup_key] = new.id
        self._queue_waiting[new.queue] += 1
        self._waiting[new.queue, new.tenant] += 1
        return self._waiting[new.queue, new.tenant]

    async def _find_earlier(self, ids: set[UUID]) -> None:
        missing = sorted(ids - self._jobs.keys())
        if missing:
            for row in await self._runner.fetch(self._find.by_id, missing):
                job = read_record(row)
                self._jobs[job.id] = job

    def _answer(self, new: NewJob, admission: Admission) -> Enqueued:
        if not isinstance(admission, Repeat):
            return Enqueued(self._jobs[new.id], is_created=True)
        job = self._jobs.get(admission.existing) or self._tombstone(new, admission.existing)
        return Enqueued(job, is_created=admission.existing == new.id)

    def _tombstone(self, new: NewJob, existing: UUID) -> JobRecord:
        """Return the tombstone of a job of which only the key is left (S13)."""
        state, settled_at = self._tombstones[new.tenant, str(new.idempotency_key)]
        return msgspec.structs.replace(
            new_record(new, settled_at), id=existing, state=state, because=None, settled_at=settled_at
        )

    async def _write(self) -> None:
        await self._settle_keys()
        if self._admitted:
            values = sent_values(self._admitted)
            ((is_in,),) = await self._runner.fetch(self._sql.insert_jobs, self._now, *values)
            if not is_in:
                raise IdRaceError

    async def _settle_keys(self) -> None:
        """Release the keys whose item did not come in, and those of dead jobs that are replaced.

        Another item of the batch may have come in with the same key, and takes it.
        """
        left = [key for key, id in self._taken.items() if key not in self._keys or self._keys[key].id != id]
        left += sorted(self._replaced)
        if left:
            await self._runner.fetch(self._sql.release_idempotency_keys, *_columns(left))
            holders = [(key, self._keys[key]) for key in left if key in self._keys]
            await self._fetch_for(
                self._sql.take_idempotency_keys, [(*key, one.id, one.fingerprint) for key, one in holders]
            )
        free = [key for key, id in self._taken_dedup.items() if self._dedup.get(key) != id]
        if free:
            await self._runner.fetch(self._sql.release_dedup_keys, *_columns(free))
            taken = [(key, self._dedup[key]) for key in free if key in self._dedup]
            await self._fetch_for(self._sql.take_dedup_keys, [(*key, id) for key, id in taken])


def _warnings(over: Iterable[tuple[OverLimit, NewJob]]) -> list[NewEntry]:
    """Return one event for each tenant and queue: the last warning, which has the highest count."""
    over = list(over)
    counts = Counter((one.tenant, one.queue) for one, _ in over)
    last = {(one.tenant, one.queue): (one, new.created_by) for one, new in over}
    return [
        over_limit(*place, one.waiting, one.limit, counts[place], created_by)
        for place, (one, created_by) in last.items()
    ]


def _untaken(wanted: Iterable[K], *known: Mapping[Any, Any]) -> Iterator[list[K]]:
    """Yield the keys without a known holder, until there are none; `StoreBusy` after many tries."""
    for _ in range(_MAX_TRIES):
        left = [key for key in wanted if not any(key in one for one in known)]
        if not left:
            return
        yield left
    raise StoreBusy("the keys of the batch change hands faster than they can be taken; try again")


def _columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
