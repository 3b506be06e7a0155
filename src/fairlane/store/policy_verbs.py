"""The policy verbs that are alike in every store: each checks its request and replaces one part of a policy.

A store adds `_change`, which replaces that part atomically, and the verbs that declare and read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, TypeAlias

from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import Hold, Override
from fairlane.store.contract.policies import (
    HoldRequest,
    OverrideRequest,
    PolicyView,
    SubjectRequest,
    check_hold,
    check_override,
    check_subject,
)

PolicyPart: TypeAlias = Literal["declared", "override", "paused", "closed"]
"""A field of `StoredPolicy`."""

PolicyRequest: TypeAlias = HoldRequest | OverrideRequest | SubjectRequest
"""A request that names one subject, and may have an `operation`."""

MakePart: TypeAlias = Callable[[Instant], object]
"""Returns the new value of a part, given the store's own now. A store may call it more than once."""


class PolicyVerbs(ABC):
    """Override, reset, pause, resume, close and reopen, over one atomic change of a policy."""

    async def override(self, request: OverrideRequest) -> PolicyView:
        check_override(request)
        return await self._change(request, "override", lambda now: _override(request, now))

    async def reset(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        return await self._change(request, "override", nothing)

    async def pause(self, request: HoldRequest) -> PolicyView:
        check_hold(request)
        return await self._change(request, "paused", lambda now: _hold(request, now))

    async def resume(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        return await self._change(request, "paused", nothing)

    async def close(self, request: HoldRequest) -> PolicyView:
        check_hold(request)
        return await self._change(request, "closed", lambda now: _hold(request, now))

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        return await self._change(request, "closed", nothing)

    @abstractmethod
    async def _change(self, request: PolicyRequest, part: PolicyPart, make: MakePart) -> PolicyView:
        """Replace one part of a subject's stored policy in one step, and return the new view.

        Appends what `audit_entries.policy_entries` returns in the same step.

        Unless `is_only_for_new_jobs(part)`, claims then wake what was parked because of the subject, and
        the queues concerned get a hint.
        """


def is_only_for_new_jobs(part: PolicyPart) -> bool:
    """Whether a change of this part concerns no job that is stored already: a close refuses new jobs alone.

    >>> is_only_for_new_jobs("closed"), is_only_for_new_jobs("paused")
    (True, False)
    """
    return part == "closed"


def nothing(now: Instant) -> None:
    """Remove a part."""


def _override(request: OverrideRequest, now: Instant) -> Override:
    return Override(
        change=request.change, who=request.who, note=request.note, set_at=now, until=request.until
    )


def _hold(request: HoldRequest, now: Instant) -> Hold:
    return Hold(who=request.who, reason=request.reason, set_at=now, until=request.until)
