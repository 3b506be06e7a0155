"""The claims facet: claimed, renewed, settled, promoted, reclaimed, expired."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fairlane.model.errors import StoreError, Unsupported
from fairlane.model.instants import Instant
from fairlane.model.job import Claim
from fairlane.model.judge import lose
from fairlane.model.lifecycle import Because, State, because
from fairlane.model.moves import lost, stopped
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    ExpireReply,
    Lost,
    PassRequest,
    PromoteReply,
    ReclaimReply,
    ReclaimRequest,
    RenewReply,
    RenewRequest,
    Settled,
    SettleReply,
    SettleRequest,
    WorkerRequest,
)
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.connect import NO_JOINING, Wire
from fairlane.store.redis.homes import PAGE, Change, Homes, Place
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import STATES, Kept, pack, read_claims, to_attempts, to_progress
from fairlane.store.redis.scripts import CLAIM_MOST
from fairlane.store.redis.settling import SettlementPages


class _ClaimParts:
    """What a claim got from its scripts. The last of them says how it goes on."""

    def __init__(self, request: ClaimRequest) -> None:
        """Have nothing yet."""
        self.request = request
        self.carry = b""
        self._due: Instant = 0
        self._is_partial = 0
        self._unread: list[tuple[Instant, list[bytes]]] = []
        self._claims: list[Claim] = []
        self.last = -1

    def take(self, number: int, answer: list[Any]) -> None:
        """Keep the answer of a script."""
        carry, due, is_partial, now, parts = answer
        if number > self.last:
            self.last, self.carry, self._due, self._is_partial = number, carry, due, is_partial
        self._unread.append((now, parts))

    def read(self) -> None:
        """Read what has not been read."""
        unread, self._unread = self._unread, []
        for now, parts in unread:
            self._claims += read_claims(self.request.worker, now, self.request.lease, parts)

    def cut(self) -> None:
        """Hear of no further script: what there is is the caller's, who may ask for more."""
        self.carry, self._is_partial = b"", 1

    def reply(self) -> ClaimReply:
        """Give all of it."""
        return ClaimReply(tuple(self._claims), self._due or None, bool(self._is_partial))


class RedisClaims:
    """Jobs as workers and duties move them."""

    turns_at_once: Final = 2
    """The server works on one while the handlers of the other run."""

    def __init__(self, wire: Wire) -> None:
        """Share the connections with the other facets."""
        self._wire = wire
        self._homes = Homes(wire)

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """See the contract: one script for every so many jobs."""
        check_serves_all(request)
        parts = _ClaimParts(request)
        parts.take(0, await self._wire.run("claim", _wishes(request), ""))
        return await self._claim(parts)

    async def _claim(self, parts: _ClaimParts) -> ClaimReply:
        """Go on from the first parts of a claim to the end; read each part while the next is made."""
        while parts.carry:
            arguments = (_wishes(parts.request), parts.carry)
            try:
                answer = await self._wire.run("claim", *arguments, meanwhile=parts.read)
            except StoreError:
                parts.cut()  # an error would leave what was claimed to its lease
            else:
                parts.take(parts.last + 1, answer)
        parts.read()
        return parts.reply()

    async def renew(self, request: RenewRequest) -> RenewReply:
        """See the contract."""
        ids = b"".join(one.id.bytes for one in request.renewals)
        renewals = [(one.fence, to_progress(one.progress)) for one in request.renewals]
        scope = request.scope.tenant or ""
        until, replies = await self._wire.run(
            "renew", request.worker, scope, request.lease, ids, pack(renewals)
        )
        named = list(zip((one.id for one in request.renewals), replies, strict=True))
        return RenewReply(
            tuple(id for id, reply in named if reply == 0),
            tuple(id for id, reply in named if reply > 1),
            until,
        )

    async def settle(self, request: SettleRequest) -> SettleReply:
        """See the contract: the next jobs come with the settlements, in the same scripts."""
        wishes = b""
        if request.claim is not None:
            check_serves_all(request.claim)
            wishes = _wishes(request.claim)
        parts = None if request.claim is None else _ClaimParts(request.claim)
        pages = SettlementPages(request, wishes, CLAIM_MOST)
        states: dict[int, list[int]] = {}

        def heed(number: int, answer: Any) -> None:
            states[number] = answer[0]
            if parts is not None:
                parts.take(number, answer[1])
                parts.read()

        try:
            await self._wire.run_all("settle", pages, heed, _line(request))
        except StoreError:
            if not states:
                raise
            if parts is not None:
                parts.cut()
        named = [
            one for number, known in states.items() for one in zip(pages.ids(number), known, strict=True)
        ]
        return SettleReply(
            tuple([Settled(id, STATES[state]) for id, state in named if state]),
            tuple([id for id, state in named if not state]),
            None if parts is None else await self._claim(parts),
        )

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:  # noqa: ARG002
        """See the contract: there is no transaction to join here."""
        raise Unsupported(NO_JOINING)

    async def asked_to_cancel(self, request: WorkerRequest) -> tuple[UUID, ...]:
        """See the contract."""
        found: list[UUID] = []
        place: Place | None = None
        while True:
            _, page = await self._homes.walk(NAMES["asked"], up=True, start=place, most=PAGE)
            jobs = (kept.job for _, kept in page if kept is not None)
            found += (
                job.id for job in jobs if job.worker == request.worker and request.scope.covers(job.tenant)
            )
            if len(page) < PAGE:
                return tuple(found)
            place = page[-1][0]

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """See the contract."""
        check_serves_all(request)
        taken: dict[UUID, Lost] = {}

        def lose_it(now: Instant, kept: Kept) -> Change:
            job = kept.job
            loss = lose(job, was_alone=kept.head.is_alone, max_crashes=request.max_crashes)
            taken[job.id] = Lost(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state)
            after = lost(job, loss, now)
            return Change(kept, after, attempts=to_attempts(after))

        done, is_partial = await self._pass("leases", request.most, lose_it, request.lapsed_by)
        is_idle = not done and not await self._wire.ask("ZCARD", self._wire.keys("leases"))
        return ReclaimReply(tuple(taken[id] for id in done), is_partial, is_idle)

    async def promote(self, request: PassRequest) -> PromoteReply:
        """See the contract."""
        check_serves_all(request)
        promoted, is_more = 0, True
        while is_more and promoted < request.most:
            most = min(CLAIM_MOST, request.most - promoted)
            count, is_more = await self._wire.run("promote", most)
            promoted += count
        is_partial, times = bool(is_more), []
        for queue in await self._wire.ask("HKEYS", self._wire.keys("queues")):
            carry, is_left, due = await self._wire.run("wake", queue, b"")
            while carry:
                carry, is_left, due = await self._wire.run("wake", queue, carry)
            is_partial = is_partial or bool(is_left)
            times += [due] if due else []
        return PromoteReply(promoted, min(times, default=None), is_partial)

    async def expire(self, request: PassRequest) -> ExpireReply:
        """See the contract."""
        check_serves_all(request)
        word = because(Because.EXPIRED)

        def end(now: Instant, kept: Kept) -> Change:
            return Change(kept, stopped(kept.job, State.CANCELLED, word, now))

        done, is_partial = await self._pass("expiries", request.most, end)
        return ExpireReply(len(done), is_partial)

    async def _pass(
        self, name: str, most: int, decide: Any, by: Instant | None = None
    ) -> tuple[list[UUID], bool]:
        """Change what is due in a sorted set, earliest first; what changed meanwhile is for the next pass."""
        done: list[UUID] = []
        place: Place | None = None
        looked = 0
        while looked <= most:
            wanted = min(PAGE, most - looked) or 1
            now, page = await self._homes.walk(NAMES[name], up=True, start=place, most=wanted, stop="now")
            page = [(at, kept) for at, kept in page if by is None or at[0] <= by]
            if looked == most:
                return done, bool(page)
            looked += len(page)
            changes = [decide(now, kept) for _, kept in page if kept is not None]
            done += await self._homes.write(changes, now)
            if len(page) < wanted:
                break
            place = page[-1][0]
        return done, False


def _line(request: SettleRequest) -> str | None:
    """Name the lane that asks, by its queues: its turns go one after the other, those of others between them.

    A server that has the pages of both turns of a lane does some of this and some of that, and is done with
    both at once; then all handlers run while it waits.
    """
    return None if request.claim is None else "\0".join([wish.queue for wish in request.claim.wishes])


def _wishes(request: ClaimRequest) -> bytes:
    return pack(
        {
            "worker": request.worker,
            "lease": request.lease,
            "wishes": [(wish.queue, wish.most) for wish in request.wishes],
            "total": request.total,
            "headroom": request.headroom,
            "isolates": request.isolates,
        }
    )
