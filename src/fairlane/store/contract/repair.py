"""Compare what a store derives from unfinished jobs with the jobs themselves, and restore it from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import Operation, entry_of
from fairlane.store.contract.request import OperatorRequest

MAX_COMPARED: Final = 5_000
"""A tenant with more unfinished jobs in a queue is not compared: it would take too long in one step."""

Derived: TypeAlias = Literal["delayed", "ready", "running", "order"]


class Flaw(msgspec.Struct, frozen=True, order=True):
    """Something derived that does not fit the jobs: what is stored, and what is right.

    With a `job`, `where` is the list in which it should stand, or should not (`right` is 0). Without one it
    is the counter of jobs in that state; `order`: the place of the tenant in the fair order, which it has
    while one of its jobs could start.
    """

    where: Derived
    stored: int
    right: int
    job: UUID | None = None


class RepairRequest(OperatorRequest, frozen=True, kw_only=True):
    """Compare the unfinished jobs of one tenant in one queue; restore what is derived if `restores`."""

    queue: str
    tenant: str
    restores: bool = False


class RepairReply(msgspec.Struct, frozen=True):
    """How many unfinished jobs there are, and what does not fit them, in order.

    `jobs` is None: more than `MAX_COMPARED`, and nothing was compared. `is_restored`: what is stored fits the
    jobs now.
    """

    jobs: int | None
    flaws: tuple[Flaw, ...] = ()
    is_restored: bool = False


def repair_reply(request: RepairRequest, jobs: int, flaws: Iterable[Flaw]) -> RepairReply:
    """Return the reply about jobs that were compared; a request that restores has done so."""
    found = tuple(sorted(flaws, key=lambda one: (one.where, str(one.job or ""), one.stored)))
    return RepairReply(jobs, found, is_restored=bool(found) and request.restores)


def repair_entries(operation: Operation | None, request: RepairRequest) -> tuple[NewEntry, ...]:
    """Return the entry of the audit for a tenant's derived data in a queue that were restored."""
    if operation is None:
        return ()
    return (entry_of(operation, f"queue {request.queue}", request.tenant),)
