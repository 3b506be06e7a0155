"""Policies: declared rules, overrides above them, pauses and closes (S46, S54)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from fairlane.model.errors import InsideTenant, TenantMismatch
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import (
    Hold,
    Override,
    PolicyChange,
    Rules,
    Subject,
    SubjectKind,
    TenantRules,
    change_problems,
)
from fairlane.store.contract.request import OperatorRequest, Request, check_instant


class PutRequest(Request, frozen=True, kw_only=True):
    """Declare rules that come from code, file or environment."""

    rules: Mapping[Subject, Rules]


class Difference(msgspec.Struct, frozen=True):
    """Declared rules that have changed; `before` is None if there were none."""

    subject: Subject
    before: Rules | None
    after: Rules


class OverrideRequest(OperatorRequest, frozen=True, kw_only=True):
    """Set an override: what changes, who, why, until when."""

    subject: Subject
    change: PolicyChange
    who: str
    note: str = ""
    until: Instant | None = None


class SubjectRequest(OperatorRequest, frozen=True, kw_only=True):
    """Name a subject, and who asks."""

    subject: Subject
    who: str = ""
    note: str = ""


class HoldRequest(OperatorRequest, frozen=True, kw_only=True):
    """Pause or close a queue, tenant or task: who, why, until when."""

    subject: Subject
    who: str
    reason: str
    until: Instant | None = None


class ReadRequest(Request, frozen=True, kw_only=True):
    """Ask for the policies of some subjects."""

    subjects: tuple[Subject, ...]


class ListRequest(Request, frozen=True, kw_only=True):
    """Ask for known subjects of a kind, sorted by name; tenants can be filtered by labels.

    Without `with_jobs` only those that have a policy are listed.
    """

    kind: SubjectKind
    labels: Mapping[str, str] = {}
    with_jobs: bool = True
    limit: int = 100
    after: str = ""


class RatesRequest(Request, frozen=True, kw_only=True):
    """Ask how far the rates of some subjects are used; of tenants, those in this queue."""

    subjects: tuple[Subject, ...]
    queue: str = ""


class RateUse(msgspec.Struct, frozen=True):
    """Up to which instant starts are used up, and the rate that computed it: another rate begins anew."""

    rate_id: str = ""
    next_allowed_at: Instant = 0


class RatesReply(msgspec.Struct, frozen=True):
    """The store's now, and the use of each rate; of a subject without a start at a rate, an empty one."""

    now: Instant
    uses: Mapping[Subject, RateUse]


class PolicyView(msgspec.Struct, frozen=True):
    """A subject's policy: declared rules, override, the effective rules of both, pause, close.

    An override, pause or close that has ended is not shown.
    """

    subject: Subject
    declared: Rules | None
    override: Override | None
    effective: Rules
    paused: Hold | None
    closed: Hold | None


def check_subject(request: Request, *subjects: Subject) -> None:
    """Raise `TenantMismatch` if one of these subjects is outside the request's scope."""
    mine = request.scope.tenant
    for subject in subjects:
        if mine is not None and subject != Subject(SubjectKind.TENANT, mine):
            raise not_theirs(subject, mine)


def not_theirs(subject: Subject, tenant: str) -> TenantMismatch:
    """Return the error for code of one tenant that names a subject of another or of all.

    >>> print(not_theirs(Subject(SubjectKind.QUEUE, "bulk"), "acme"))  # doctest: +ELLIPSIS
    queue bulk belongs to all tenants, and this code acts for tenant acme; ...
    """
    if subject.kind is SubjectKind.TENANT:
        return TenantMismatch(subject.name, tenant)
    return InsideTenant(f"{subject} belongs to all tenants", tenant)


def check_hold(request: HoldRequest) -> None:
    """Raise if a subject is out of scope, a gate, breaker or budget, or `until` is after `LAST_INSTANT`."""
    check_subject(request, request.subject)
    check_instant("until", request.until)
    if request.subject.kind is SubjectKind.GATE:
        message = "a gate cannot be paused or closed; override its limit with 0"
        raise ValueError(message)
    if request.subject.kind is SubjectKind.BREAKER:
        message = "a breaker cannot be paused or closed for new jobs; force it open"
        raise ValueError(message)
    if request.subject.kind is SubjectKind.BUDGET:
        message = "a budget cannot be paused or closed; override its ceiling with 0"
        raise ValueError(message)


def check_remove(request: SubjectRequest) -> None:
    """Raise unless the subject is a queue, which belongs to all tenants."""
    if request.subject.kind is not SubjectKind.QUEUE:
        message = f"only a queue can be removed, not {request.subject}; reset it instead"
        raise ValueError(message)
    check_subject(request, request.subject)


def check_override(request: OverrideRequest) -> None:
    """Raise if a subject is out of scope or lacks what changes, or `until` is after `LAST_INSTANT`."""
    check_subject(request, request.subject)
    check_instant("until", request.until)
    problems = change_problems(request.subject.kind, request.change)
    if problems:
        message = "; ".join(problems)
        raise ValueError(message)


def check_list(request: ListRequest) -> None:
    """Raise `TenantMismatch` if one tenant asks for queues, tasks, gates or budgets."""
    if request.scope.tenant is not None and request.kind is not SubjectKind.TENANT:
        raise InsideTenant(f"{request.kind}s belong to all tenants", request.scope.tenant)


def is_listed(view: PolicyView, request: ListRequest) -> bool:
    """Whether a subject is within the scope and has the labels asked for."""
    if not isinstance(view.effective, TenantRules):
        return True
    labels = view.effective.labels
    return request.scope.covers(view.subject.name) and all(
        labels.get(key) == value for key, value in request.labels.items()
    )


class PoliciesFacet(Protocol):
    """Read and change policies. A change takes effect at the next claim or enqueue.

    A change itself wakes nothing: each later claim of a queue wakes a bounded number of tenants and strands
    that were parked because of the subject before the change (`ClaimsFacet.claim`). Queues concerned get a
    hint.

    Under the scope of one tenant only that tenant's own policy can be read or changed; any other subject
    raises `TenantMismatch`. Pausing or closing a gate, a breaker or a budget raises ValueError.
    """

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        """Replace the declared rules of these subjects; the last worker to start wins.

        Rules that are the same as before change and wake nothing, since every worker declares all of them at
        its start. Overrides stay. Of each budget it also writes when the coming periods begin
        (`model.policy.periods`), whether or not its rules have changed (S115). Returns the differences, so
        that the caller can log them.
        """

    async def override(self, request: OverrideRequest) -> PolicyView:
        """Set an override above the declared rules; it replaces an earlier one completely.

        A change that does not fit the kind of subject, or is out of range, raises ValueError and stores
        nothing.
        """

    async def reset(self, request: SubjectRequest) -> PolicyView:
        """Remove the override, if any."""

    async def pause(self, request: HoldRequest) -> PolicyView:
        """Stop claims of a queue, tenant or task, and nothing else (S46). A later pause replaces it."""

    async def resume(self, request: SubjectRequest) -> PolicyView:
        """End a pause, if any."""

    async def close(self, request: HoldRequest) -> PolicyView:
        """Refuse new jobs of a queue, tenant or task; stored jobs go on."""

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        """End a close, if any."""

    async def remove(self, request: SubjectRequest) -> int:
        """Delete the whole policy of a queue in which no job waits or runs: declared, override, pause, close.

        Returns how many wait or run, counting to `MAX_ROWS_READ`; nothing changes unless that is 0. A job
        that is enqueued meanwhile may be missed: it counts as enqueued afterwards. A subject of another kind
        raises ValueError.
        """

    async def rates(self, request: RatesRequest) -> RatesReply:
        """Return how far rates are used. Each is exact when it is read."""

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        """Return the policy of each subject; an unknown one has defaults."""

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        """Return subjects after `after`, by name: those declared, overridden, paused or closed.

        Queues and tenants with jobs are among them, unless the request says otherwise. Which tasks there are
        is not asked here: workers publish them (`RegistryFacet.tasks`).
        """
