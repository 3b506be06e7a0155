"""What is allowed: declared rules, overrides above them, pauses and closes (S46, S54)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from fairlane.model.errors import InsideTenant, TenantMismatch
from fairlane.model.instants import Instant
from fairlane.model.layers import Change, Hold, Kind, Override, Rules, Subject, TenantRules, misfits
from fairlane.store.contract.request import Request, check_instant


class PutRequest(Request, frozen=True, kw_only=True):
    """Values declared by code, file or environment."""

    rules: Mapping[Subject, Rules]


class Difference(msgspec.Struct, frozen=True):
    """A declared value that was another before; None if there was none."""

    subject: Subject
    before: Rules | None
    after: Rules


class OverrideRequest(Request, frozen=True, kw_only=True):
    """A change above what is declared: who, why, until when."""

    subject: Subject
    change: Change
    who: str
    note: str = ""
    until: Instant | None = None


class SubjectRequest(Request, frozen=True, kw_only=True):
    """Name one subject, and who asks."""

    subject: Subject
    who: str = ""
    note: str = ""


class HoldRequest(Request, frozen=True, kw_only=True):
    """Pause or close a queue, tenant or task: who, why, until when."""

    subject: Subject
    who: str
    reason: str
    until: Instant | None = None


class ReadRequest(Request, frozen=True, kw_only=True):
    """Ask for the policies of some subjects."""

    subjects: tuple[Subject, ...]


class ListRequest(Request, frozen=True, kw_only=True):
    """Ask for all known subjects of a kind, by name; of tenants only those with these labels."""

    kind: Kind
    labels: Mapping[str, str] = {}
    limit: int = 100
    after: str = ""


class PolicyView(msgspec.Struct, frozen=True):
    """All that holds for a subject: declared, override, what is in force of both, pause, close.

    An override, pause or close whose `until` has passed is not shown.
    """

    subject: Subject
    declared: Rules | None
    override: Override | None
    effective: Rules
    paused: Hold | None
    closed: Hold | None


def check_subject(request: Request, *subjects: Subject) -> None:
    """Raise `TenantMismatch` if the scope of a request does not reach one of these subjects."""
    mine = request.scope.tenant
    for subject in subjects:
        if mine is not None and subject != Subject(Kind.TENANT, mine):
            raise not_theirs(subject, mine)


def not_theirs(subject: Subject, tenant: str) -> TenantMismatch:
    """Return the error for a tenant that names a subject which is another's, or everybody's.

    >>> print(not_theirs(Subject(Kind.QUEUE, "bulk"), "acme"))  # doctest: +ELLIPSIS
    queue bulk belongs to all tenants, and this code acts for tenant acme; ...
    """
    if subject.kind is Kind.TENANT:
        return TenantMismatch(subject.name, tenant)
    return InsideTenant(f"{subject} belongs to all tenants", tenant)


def check_hold(request: HoldRequest) -> None:
    """Raise if a subject is out of reach or cannot be held at all, or the end is beyond all instants."""
    check_subject(request, request.subject)
    check_instant("until", request.until)
    if request.subject.kind is Kind.GATE:
        message = "a gate cannot be paused or closed; override its limit with 0"
        raise ValueError(message)


def check_override(request: OverrideRequest) -> None:
    """Raise if a subject is out of reach or lacks what the change sets, or the end is beyond all instants."""
    check_subject(request, request.subject)
    check_instant("until", request.until)
    problems = misfits(request.subject.kind, request.change)
    if problems:
        message = "; ".join(problems)
        raise ValueError(message)


def check_list(request: ListRequest) -> None:
    """Raise `TenantMismatch` if one tenant asks for what is not a tenant's."""
    if request.scope.tenant is not None and request.kind is not Kind.TENANT:
        raise InsideTenant(f"{request.kind}s belong to all tenants", request.scope.tenant)


def is_listed(view: PolicyView, request: ListRequest) -> bool:
    """Whether a subject belongs into the answer: within the scope, and with the labels asked for."""
    if not isinstance(view.effective, TenantRules):
        return True
    labels = view.effective.labels
    return request.scope.covers(view.subject.name) and all(
        labels.get(key) == value for key, value in request.labels.items()
    )


class Policies(Protocol):
    """Read and change what is allowed. Everything takes effect at the next claim or enqueue.

    A change wakes nobody itself, however many it concerns: the claims of a queue wake what was parked because
    of the subject before the change, a bounded number each (`Claims.claim`). Queues concerned get a hint.

    Under the scope of one tenant only that tenant's own policy can be read or changed; naming any other
    subject raises `TenantMismatch`. Gates cannot be held; holding one raises ValueError.
    """

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        """Replace the declared values of these subjects; others stay. The newest start wins.

        What is declared as before changes and wakes nothing: every worker declares all at its start.

        Overrides are not touched. Answers what was different before, so that the caller can log it.
        """

    async def override(self, request: OverrideRequest) -> PolicyView:
        """Lay a change above the declared values; it replaces an earlier override of the subject whole.

        A change that the kind of subject does not have, or that is out of range, raises ValueError and
        stores nothing.
        """

    async def reset(self, request: SubjectRequest) -> PolicyView:
        """Take the override off; without one nothing changes."""

    async def pause(self, request: HoldRequest) -> PolicyView:
        """Stop claims of a queue, tenant or task, and nothing else (S46). A later pause replaces it."""

    async def resume(self, request: SubjectRequest) -> PolicyView:
        """End a pause; without one nothing changes."""

    async def close(self, request: HoldRequest) -> PolicyView:
        """Refuse new jobs of a queue, tenant or task; what is there goes on."""

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        """End a close; without one nothing changes."""

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        """Give what holds for each subject; one that was never named has defaults."""

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        """Give known subjects by name, from after `after` on: declared, overridden, held or with jobs."""
