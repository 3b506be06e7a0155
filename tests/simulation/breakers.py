"""Check that breakers let pass whom they should (S58, S110-S112): counted anew from what the store was told.

Believes none of the states that the store answers with: it keeps every failure and whoever has a permit, and
compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import msgspec

from fairlane.lab import ledger
from fairlane.lab.ledger import Record
from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import LAST_INSTANT, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.policy.overrides import BreakerRules
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersReply,
    ChangeBreakerRequest,
    EnterReply,
    EnterRequest,
    ReportRequest,
    StoredBreaker,
)
from tests.simulation.policies import Mirror


class Seen(msgspec.Struct):
    """A breaker as it must be. `failures` and `uses` are those since it was closed last."""

    slots: int | None = None
    open_until: Instant = 0
    passed: int = 0
    permits: set[UUID] = msgspec.field(default_factory=set[UUID])
    failures: list[tuple[Instant, str]] = []
    uses: dict[str, Instant] = {}
    forced_until: Instant = 0

    def open(self, until: Instant) -> None:
        """Let nobody pass until then, and then one."""
        self.slots, self.open_until, self.passed, self.forced_until = 1, until, 0, 0
        self.permits, self.failures, self.uses = set(), [], {}

    def close(self, forced_until: Instant = 0) -> None:
        """Let everybody pass."""
        self.slots, self.open_until, self.passed, self.forced_until = None, 0, 0, forced_until
        self.permits, self.failures, self.uses = set(), [], {}


class BreakersCheck:
    """Every breaker of a run, and who has a permit."""

    def __init__(
        self,
        policies: Mirror,
        clock: Callable[[], Instant],
        elapsed: Callable[[], Micros],
        fence_of: Callable[[UUID], int | None],
    ) -> None:
        """Ask these for rules, for both clocks, and whether a job has a claim that nobody has ended."""
        self.records: list[Record] = []
        self.figures = {"opened": 0, "permits": 0, "held back": 0}
        self._policies = policies
        self._clock = clock
        self._elapsed = elapsed
        self._fence_of = fence_of
        self._seen: dict[BreakerKey, Seen] = {}

    def _keys(self, name: str, tenant: str) -> Iterator[tuple[BreakerKey, Seen]]:
        for key in (BreakerKey(name), BreakerKey(name, tenant)):
            yield key, self._seen.setdefault(key, Seen())

    # ── who passes ────────────────────────────────────────────────────────────

    def claimed(self, claim: Claim, *, is_permitted: bool) -> Iterator[str]:
        """Note a claim; say why it should not have been made."""
        now, job = self._clock(), claim.job
        name = self._policies.breaker(job.task, now)
        guarded = [] if name is None else [one for one in self._keys(name, job.tenant) if one[1].slots]
        for key, seen in guarded:
            if not self._has_room(seen, now):
                yield f"job {job.id} was claimed, but {key} lets nobody pass: {seen}"
            self._permit(key, seen, job.id, claim.fence)
        if is_permitted != bool(guarded):
            yield f"job {job.id} was claimed {'with' if is_permitted else 'without'} a permit of {name}"

    def entered(self, request: EnterRequest, reply: EnterReply) -> Iterator[str]:
        """Note that a handler asked; say what it should have been told."""
        now = self._clock()
        guarded = [one for one in self._keys(request.name, request.tenant) if one[1].slots]
        fence = None if request.job is None else self._fence_of(request.job)
        job = None if fence is None else request.job
        must_wait = any(
            job is None or not (self._has_room(seen, now) or (job in seen.permits and now >= seen.open_until))
            for _, seen in guarded
        )
        self.figures["held back"] += must_wait
        if (reply.is_allowed, reply.is_closed) != (not must_wait, not guarded):
            yield f"job {request.job} was told {reply} at {request.name}: {[seen for _, seen in guarded]}"
        for key, seen in guarded:
            if reply.is_allowed and job is not None and fence is not None and job not in seen.permits:
                self._permit(key, seen, job, fence)

    def _has_room(self, seen: Seen, now: Instant) -> bool:
        held = sum(self._fence_of(job) is not None for job in seen.permits)
        return now >= seen.open_until and held < (seen.slots or 0)

    def _permit(self, key: BreakerKey, seen: Seen, job: UUID, fence: int) -> None:
        self.figures["permits"] += 1
        seen.permits = {one for one in seen.permits if self._fence_of(one) is not None} | {job}
        at, tenant = self._elapsed(), key.tenant or None
        line = ledger.Permitted(job=str(job), fence=fence, breaker=key.name, tenant=tenant, at=at)
        self.records.append(line)

    def forgot(self, job: UUID) -> None:
        """Let go of the permits of a claim that the store has lost."""
        for seen in self._seen.values():
            seen.permits.discard(job)

    # ── what becomes of it ────────────────────────────────────────────────────

    def reported(self, request: ReportRequest, reply: BreakersReply) -> Iterator[str]:
        """Note outcomes; say which breakers are not what they should be."""
        now = self._clock()
        for one in request.reports:
            rules = self._policies.breaker_rules(one.name, now)
            counted = "" if rules.per == "all" else one.outcomes.tenant
            for key, seen in self._keys(one.name, one.outcomes.tenant):
                if seen.slots is not None:
                    self._told(key, seen, rules, one.outcomes, now)
                elif key.tenant == counted:
                    self._count(key, seen, rules, one.outcomes, now)
        for stored in reply.breakers:
            yield from self._differs(stored)

    def _count(
        self, key: BreakerKey, seen: Seen, rules: BreakerRules, outcomes: Outcomes, now: Instant
    ) -> None:
        seen.uses[outcomes.tenant] = now
        seen.failures += [(now, outcomes.tenant)] * min(outcomes.failed, rules.failures)
        recent = [tenant for at, tenant in seen.failures if at > now - rules.window]
        users = sum(at > now - rules.window for at in seen.uses.values())
        is_several = users < 2 or len(set(recent)) >= 2
        if outcomes.failed and len(recent) >= rules.failures and is_several and seen.forced_until <= now:
            self._open(key, seen, now + rules.open_for, rules.ramp)

    def _told(
        self, key: BreakerKey, seen: Seen, rules: BreakerRules, outcomes: Outcomes, now: Instant
    ) -> None:
        if outcomes.permit is None or outcomes.permit not in seen.permits:
            return
        passed = False if outcomes.failed else True if outcomes.succeeded else None
        fence = self._fence_of(outcomes.permit)
        if fence is not None:
            job, tenant = str(outcomes.permit), key.tenant or None
            told = ledger.Released(
                job=job, fence=fence, breaker=key.name, tenant=tenant, passed=passed, at=self._elapsed()
            )
            self.records.append(told)
        seen.permits.discard(outcomes.permit)
        if passed is False:
            seen.open(now + rules.open_for)
        elif passed:
            seen.passed += 1
            if seen.slots is not None and seen.passed >= seen.slots:
                seen.slots, seen.passed = 2 * seen.slots, 0
                if seen.slots > rules.ramp:
                    seen.close()

    def _open(self, key: BreakerKey, seen: Seen, until: Instant, ramp: int) -> None:
        self.figures["opened"] += 1
        seen.open(until)
        # The recording clock does not jump as the store's does: how long it is open is not told.
        at, tenant = self._elapsed(), key.tenant or None
        self.records.append(ledger.Opened(breaker=key.name, tenant=tenant, at=at, until=at, ramp=ramp))

    def changed(self, request: ChangeBreakerRequest, reply: StoredBreaker) -> Iterator[str]:
        """Note what an operator has set."""
        now, key = self._clock(), request.key
        seen = self._seen.setdefault(key, Seen())
        until = LAST_INSTANT if request.until is None else request.until
        match request.verb:
            case "open":
                self._open(key, seen, until, self._policies.breaker_rules(key.name, now).ramp)
            case "close":
                seen.close(until)
            case "reset":
                seen.close()
        yield from self._differs(reply)

    def _differs(self, stored: StoredBreaker) -> Iterator[str]:
        seen, state = self._seen.setdefault(stored.key, Seen()), stored.state
        if (state.slots, state.open_until) != (seen.slots, seen.open_until):
            yield f"{stored.key} is {state}, and should be {seen}"
