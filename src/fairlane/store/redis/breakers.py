"""The breakers facet: outcomes, permits, what operators set (S58). Claims read `open_breakers`.

A change is computed here and written if what was read is still stored; else it is read and computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from fairlane.model.guards.breaker import BreakerState
from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind
from fairlane.store.breaker_changes import (
    breaker_entries,
    breaker_events,
    entered,
    keys_of,
    operated,
    pack_state,
    reported,
)
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersReply,
    BreakersRequest,
    ChangeBreakerRequest,
    EnterReply,
    EnterRequest,
    ReportRequest,
    StoredBreaker,
    check_enter,
    check_operates,
    check_reports,
)
from fairlane.store.contract.request import MAX_PAGE_SIZE, check_page
from fairlane.store.policy_records import NO_POLICY, in_force
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.policies.encoding import read_policy
from fairlane.store.redis.records.breaker import open_part, read_state
from fairlane.store.redis.records.entries import encode_entries


class _Stored(NamedTuple):
    """A state, and the bytes as they were read."""

    state: BreakerState
    packed: bytes
    open: bytes


class RedisBreakers:
    """Whole states in one hash, what claims read of those that are not closed in another."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def report(self, request: ReportRequest) -> BreakersReply:
        check_reports(request)
        names = sorted({one.name for one in request.reports})
        keys = {key for one in request.reports for key in keys_of(one.name, one.outcomes.tenant)}
        subjects = [Subject(SubjectKind.BREAKER, name) for name in names]
        _, *policies = await self._client.run("policies/read", *map(str, subjects))
        rules = {one.name: _rules(one, raw) for one, raw in zip(subjects, policies, strict=True)}
        while True:
            now, stored, _ = await self._read(keys)
            before = {key: one.state for key, one in stored.items()}
            after = reported(request.reports, rules.__getitem__, before, now)
            if await self._write(now, stored, after):
                return BreakersReply(now, tuple(StoredBreaker(key, after[key]) for key in sorted(after)))

    async def enter(self, request: EnterRequest) -> EnterReply:
        check_enter(request)
        asked = () if request.job is None else (request.job,)
        while True:
            now, stored, running = await self._read(keys_of(request.name, request.tenant), asked)
            states = {key: one.state for key, one in stored.items()}
            job = request.job if request.job in running else None
            reply, after = entered(states, now, job, running)
            if await self._write(now, stored, after):
                return reply

    async def change(self, request: ChangeBreakerRequest) -> StoredBreaker:
        check_operates(request)
        key = request.key
        while True:
            now, stored, _ = await self._read((key,))
            before = stored[key].state
            after = operated(request, before, now)
            audit = breaker_entries(request.operation, key, before, after, now)
            if await self._write(now, stored, {key: after}, audit):
                break
        _, stored, _ = await self._read((key,))
        return StoredBreaker(key, stored[key].state, (await self._waiting()).get(str(key), 0))

    async def list(self, request: BreakersRequest) -> BreakersReply:
        check_operates(request)
        check_page(request.limit)
        after = request.after or BreakerKey("")
        first = "-" if request.after is None else f"({_field(after)}"
        last = "+"
        if request.name is not None:
            first = max(first, f"[{request.name}\0") if first.startswith("(") else f"[{request.name}\0"
            last = f"({request.name}\1"
        key = self._client.keys("breakers_named")
        named = await self._client.ask("ZRANGE", key, first, last, "BYLEX", "LIMIT", 0, request.limit)
        keys = [BreakerKey(*name.decode().split("\0")) for name in named]
        now, stored, _ = await self._read(keys)
        waiting = await self._waiting() if keys else {}
        return BreakersReply(
            now, tuple(StoredBreaker(key, stored[key].state, waiting.get(str(key), 0)) for key in keys)
        )

    async def _waiting(self) -> dict[str, int]:
        """Return how many strands wait in each line, over all queues."""
        counts: dict[str, int] = {}
        stored = await self._client.ask("HGETALL", self._client.keys("gate_waiter_counts"))
        for name, count in stored.items():
            line = name.decode().partition("\0")[2]
            counts[line] = min(counts.get(line, 0) + int(count), MAX_PAGE_SIZE)
        return counts

    async def _read(
        self, keys: Collection[BreakerKey], jobs: Collection[UUID] = ()
    ) -> tuple[Instant, dict[BreakerKey, _Stored], set[UUID]]:
        """Return the instant, the states, and which of these jobs and of those with a permit run."""
        asked = list(keys)
        ids = b"".join(job.bytes for job in jobs)
        now, *rows, running = await self._client.run("breakers/read", ids, *map(_field, asked))
        stored = {
            key: _Stored(read_state(packed, opened), packed, opened)
            for key, (packed, opened) in zip(asked, rows, strict=True)
        }
        return now, stored, {UUID(bytes=id) for id in running}

    async def _write(
        self,
        now: Instant,
        stored: Mapping[BreakerKey, _Stored],
        after: Mapping[BreakerKey, BreakerState],
        audit: Sequence[NewEntry] = (),
    ) -> bool:
        """Write what has changed and tell of it; False: read again."""
        changed = {key: state for key, state in after.items() if state != stored[key].state}
        if not changed:
            return True
        events = [
            one for key, state in changed.items() for one in breaker_events(key, stored[key].state, state)
        ]
        entries = encode_entries("audit", audit) + encode_entries("events", events)
        flat = [
            value
            for key, state in changed.items()
            for value in (
                _field(key),
                stored[key].packed,
                stored[key].open,
                pack_state(state),
                open_part(state),
            )
        ]
        return bool(await self._client.run("breakers/write", entries, *flat, at=now))


def _rules(subject: Subject, raw: bytes) -> BreakerRules:
    policy = read_policy(SubjectKind.BREAKER, raw)
    return in_force(subject, policy, NO_POLICY, 0)  # type: ignore[return-value]


def _field(key: BreakerKey) -> str:
    return f"{key.name}\0{key.tenant}"
