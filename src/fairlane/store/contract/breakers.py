"""Circuit breakers: what was seen, who may pass, what operators set (S58, S110-S112)."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.errors import InsideTenant, TenantMismatch
from fairlane.model.guards.breaker import BreakerState, Outcomes, Phase
from fairlane.model.instants import Instant
from fairlane.store.contract.request import MAX_PAGE_SIZE, OperatorRequest, Request, check_instant

MAX_BREAKER_OUTCOMES: Final = 1_000
"""How many outcomes one request brings."""

MAX_OPEN_BREAKERS: Final = 100
"""How many breakers that are not closed a claim names; with more it names none."""

BreakerVerb: TypeAlias = Literal["open", "close", "reset"]


class BreakerKey(msgspec.Struct, frozen=True, order=True):
    """A breaker, or with a `tenant` what it is for this tenant alone."""

    name: str
    tenant: str = ""

    def __str__(self) -> str:
        """Return the subject by which `explain` names it, and the line in which strands wait for it.

        >>> str(BreakerKey("mail")), str(BreakerKey("mail", "acme"))
        ('breaker mail', 'breaker mail acme')
        """
        return f"breaker {self.name} {self.tenant}".rstrip()


class BreakerOutcomes(msgspec.Struct, frozen=True):
    """What one process has seen of one breaker."""

    name: str
    outcomes: Outcomes


class ReportRequest(Request, frozen=True, kw_only=True):
    """Tell what was seen, and ask what the breakers of these tenants are now."""

    reports: tuple[BreakerOutcomes, ...]


class EnterRequest(Request, frozen=True, kw_only=True):
    """Ask whether a running job may pass a breaker for its tenant. Without a job: only if it is closed."""

    name: str
    tenant: str
    job: UUID | None = None


class ChangeBreakerRequest(OperatorRequest, frozen=True, kw_only=True):
    """Open, close or reset a breaker, or that of one tenant: who, why, until when."""

    key: BreakerKey
    verb: BreakerVerb
    who: str = ""
    reason: str = ""
    until: Instant | None = None


class BreakersRequest(Request, frozen=True, kw_only=True):
    """Ask for breakers that something is known about, by name and tenant; of one `name`, if given."""

    name: str | None = None
    after: BreakerKey | None = None
    limit: int = MAX_PAGE_SIZE


class StoredBreaker(msgspec.Struct, frozen=True):
    """A breaker as it is stored. `waiting`: how many strands wait for it, counted to `MAX_PAGE_SIZE`."""

    key: BreakerKey
    state: BreakerState
    waiting: int = 0


class BreakersReply(msgspec.Struct, frozen=True):
    """The store's now, and breakers in the order of their keys."""

    now: Instant
    breakers: tuple[StoredBreaker, ...] = ()


class BreakerWord(msgspec.Struct, frozen=True):
    """What a breaker that is not closed was, and until when it is open."""

    key: BreakerKey
    phase: Phase
    open_until: Instant


class OpenBreakers(msgspec.Struct, frozen=True):
    """The breakers that were not closed at `now`, in the order of their keys; `is_cut`: too many to name."""

    now: Instant
    words: tuple[BreakerWord, ...] = ()
    is_cut: bool = False


class EnterReply(msgspec.Struct, frozen=True):
    """Whether the job may pass; if not, from when on it is worth asking. `is_closed`: everybody may."""

    is_allowed: bool
    is_closed: bool = False
    until: Instant | None = None


def check_reports(request: ReportRequest) -> None:
    """Raise if the outcomes are too many, or are another tenant's."""
    if len(request.reports) > MAX_BREAKER_OUTCOMES:
        message = f"one request brings at most {MAX_BREAKER_OUTCOMES} outcomes, not {len(request.reports)}"
        raise ValueError(message)
    for one in request.reports:
        if request.scope.tenant is not None and not request.scope.covers(one.outcomes.tenant):
            raise TenantMismatch(one.outcomes.tenant, request.scope.tenant)


def check_enter(request: EnterRequest) -> None:
    """Raise `TenantMismatch` if it is another tenant's breaker."""
    if request.scope.tenant is not None and not request.scope.covers(request.tenant):
        raise TenantMismatch(request.tenant, request.scope.tenant)


def check_operates(request: ChangeBreakerRequest | BreakersRequest) -> None:
    """Raise `InsideTenant` under the scope of one tenant: breakers are an operator's matter."""
    if request.scope.tenant is not None:
        raise InsideTenant("breakers belong to all tenants", request.scope.tenant)
    if isinstance(request, ChangeBreakerRequest):
        check_instant("until", request.until)


class BreakersFacet(Protocol):
    """Count outcomes, open and close, let single jobs through.

    `model.guards.breaker` decides. Claims read the same states: strands of a task whose breaker is not closed
    wait in its line (`ClaimsFacet.claim`), and a claim that lets a job through notes its permit. Every change
    of a state is one step, whoever else reports, claims or sets it at the same time.
    """

    async def report(self, request: ReportRequest) -> BreakersReply:
        """Count these outcomes, and return the states that bear on them: for all tenants and for each named.

        Each report stands alone. What opens or closes appends an event, and hints at queues with strands in
        the line. A breaker without rules has the defaults.
        """

    async def enter(self, request: EnterRequest) -> EnterReply:
        """Let a running job pass, unless the breaker is open or all its permits are given.

        A job that has a permit keeps it. A permit counts as long as its job runs, and until an outcome with
        it is reported.
        """

    async def change(self, request: ChangeBreakerRequest) -> StoredBreaker:
        """Force open or closed, or reset; a later change replaces it."""

    async def list(self, request: BreakersRequest) -> BreakersReply:
        """Return the next breakers that something is known about. Fewer than `limit` are the last."""
