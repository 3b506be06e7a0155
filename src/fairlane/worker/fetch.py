"""Settle what is over and claim for what is free, in one round trip; start what came (S35, S66).

One pass of one lane. What the store does not take is kept and sent again until it is taken or stale. The
store is asked in the renewing thread: a handler that blocks this loop can delay the start of a job, but not
the keeping of its lease.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from fairlane.app.client import Client
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.absence import Absence
from fairlane.runtime.clock import Clock
from fairlane.store.contract.claims import ClaimReply, ClaimRequest, SettleReply, SettleRequest, Wish
from fairlane.store.contract.registry import Pulse
from fairlane.store.contract.request import Request
from fairlane.worker.attempt import Attempt
from fairlane.worker.floor import Floor
from fairlane.worker.lane import Desk, Done
from fairlane.worker.salvage import settle_all

_UNTIL_RUNG: Final[Micros] = 3_600 * SECOND
"""A lane with nothing to do waits for its bell; coming back by itself would find nothing either."""

_SOON: Final[Micros] = SECOND // 200


class _Answer(NamedTuple):
    """What the store said in one turn, and the attempts that are held since."""

    settled: SettleReply
    claimed: ClaimReply | None
    arrived: list[Attempt]


class Fetch:
    """The turns of one lane with the store, one after the other; a lane may have two such rows of turns."""

    def __init__(self, desk: Desk, floor: Floor, client: Client, clock: Clock, absence: Absence) -> None:
        self._desk = desk
        self._floor = floor
        self._client = client
        self._clock = clock
        self._times = floor.times
        self._absence = absence
        self._not_before: Micros = 0

    async def __call__(self) -> Micros | None:
        """Take one turn, if there is a reason for one; say when to come back if no bell rings before."""
        desk, now = self._desk, self._clock.elapsed()
        if self._floor.is_done(desk):
            return None
        if now < self._not_before:
            return self._not_before - now
        if desk.due_at is not None and now >= desk.due_at:
            desk.is_hungry, desk.due_at = True, None
        if self._floor.is_closing and desk.asking:
            # What is handed back now could be claimed by the turn that is under way: that one settles it.
            return _UNTIL_RUNG
        claim = self._wanted()
        if not desk.done and claim is None:
            return _UNTIL_RUNG if desk.due_at is None else desk.due_at - now
        batch, desk.done = self._floor.newest(desk.done), []
        mark = self._absence.mark()
        try:
            with desk.turn(len(batch), 0 if claim is None else claim.total):
                await self._turn(batch, claim)
        except StoreError as error:
            # A settlement that was applied after all is stale the next time, which is as good.
            desk.done, desk.is_hungry = [*batch, *desk.done], True
            pause = self._absence.met(error)
            self._not_before = self._clock.elapsed() + pause
            return pause
        self._absence.over(mark)
        return 0

    def _wanted(self) -> ClaimRequest | None:
        desk = self._desk
        room = desk.room
        if room <= 0 or self._floor.is_closing or not (desk.is_hungry or desk.done):
            return None
        return ClaimRequest(
            scope=Scope.all(),
            worker=self._floor.id,
            lease=self._floor.lease,
            wishes=tuple(Wish(queue, most) for queue, most in desk.wishes()),
            total=room,
            headroom=desk.lane.headroom_slots,
        )

    async def _turn(self, batch: list[Done], claim: ClaimRequest | None) -> None:
        asked_at = self._clock.elapsed()
        self._desk.is_hungry = self._desk.is_hungry and claim is None
        own = [done for done in batch if done.attempt.rein.has_succeeded]
        if own:
            # A transaction that nobody here can end may still hold them: the others do not wait for that.
            self._floor.settled(own, await self._client.portal.aside(self._confirm(own)))
            batch[:] = [done for done in batch if not done.attempt.rein.has_succeeded]
        answer = await self._client.portal.aside(self._ask(batch, claim, asked_at))
        if batch:
            self._floor.settled(self._heard_of(batch, answer.settled), answer.settled)
        if claim is not None and answer.claimed is None:
            self._desk.is_hungry = True  # it could not be asked for, beside what had to be settled alone
        elif claim is not None and answer.claimed is not None:
            await self._came(claim, answer.claimed, answer.arrived, asked_at)
            await self._look_at(answer.claimed.next_due_at)

    async def _ask(self, batch: list[Done], claim: ClaimRequest | None, asked_at: Micros) -> _Answer:
        """Ask the store, in the renewing thread, and hold what comes."""
        verbs = self._client.store.claims
        settled, claimed = SettleReply(), None
        if batch:
            settled = await settle_all(
                batch,
                lambda whole: verbs.settle(self._settling(whole, claim)),
                lambda one: verbs.settle(self._settling(one)),
            )
            claimed = settled.claimed
        elif claim is not None:
            claimed = await verbs.claim(claim)
        arrived = [] if claimed is None else self._floor.receive(claimed.claims, self._desk, asked_at)
        return _Answer(settled, claimed, arrived)

    def _heard_of(self, batch: list[Done], reply: SettleReply) -> list[Done]:
        """Give what the store has answered for; the rest is kept for the next turn."""
        if len(reply.settled) + len(reply.stale) == len(batch):
            return batch
        named = {one.id for one in reply.settled}.union(reply.stale)
        self._desk.done[:0] = [done for done in batch if done.settlement.id not in named]
        return [done for done in batch if done.settlement.id in named]

    async def _confirm(self, own: list[Done]) -> SettleReply:
        """Settle what has succeeded in its handler's own transaction, unless that is still open."""
        return await self._client.store.claims.settle(self._settling(own, waits=False))

    def _settling(
        self, batch: list[Done], claim: ClaimRequest | None = None, *, waits: bool = True
    ) -> SettleRequest:
        settlements = tuple(done.settlement for done in batch)
        return SettleRequest(
            scope=Scope.all(), worker=self._floor.id, settlements=settlements, claim=claim, waits=waits
        )

    async def _came(
        self, asked: ClaimRequest, reply: ClaimReply, arrived: list[Attempt], asked_at: Micros
    ) -> None:
        desk, claims = self._desk, reply.claims
        if reply.is_partial or len(claims) == asked.total:
            desk.is_hungry = True
        if claims:
            self._times.learn(claims[0].lease_until - asked.lease, asked_at)
        desk.take(claims)
        await self._floor.begin(arrived, asked_at)
        if not desk.is_hungry:
            self._floor.thirst.ring()

    async def _look_at(self, next_due_at: Instant | None) -> None:
        """Come back when time alone brings the next job."""
        self._desk.due_at = None
        if next_due_at is None:
            return
        now = self._clock.elapsed()
        if self._times.own(next_due_at) <= now:
            # Not due for the store, but for us: its clock was moved.
            with suppress(StoreError):
                pulse = await self._client.portal.aside(self._pulse())
                self._times.learn(pulse.now, now)
        self._desk.due_at = max(now + _SOON, self._times.own(next_due_at))

    async def _pulse(self) -> Pulse:
        return await self._client.store.registry.pulse(Request(scope=Scope.all()))
