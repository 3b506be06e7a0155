"""A snapshot of some policies at one instant, for verbs that decide in the model. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlane.model.instants import Instant
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import (
    GateRules,
    Hold,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    limits_of,
)
from fairlane.store.contract.policies import PolicyView
from fairlane.store.policy_records import (
    EVERYONE,
    NO_POLICY,
    StoredPolicy,
    hold_in_force,
    in_force,
    unpack_policy,
    view,
)
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connection import Connection, Server


class PolicySnapshot:
    """The policies of some subjects and of everyone; a subject that was not asked for has none."""

    def __init__(self, now: Instant, known: dict[Subject, StoredPolicy]) -> None:
        """Keep what was read."""
        self.now = now
        self.known = known

    def policy(self, subject: Subject) -> StoredPolicy:
        """Return what is stored about a subject."""
        return self.known.get(subject, NO_POLICY)

    def view(self, subject: Subject) -> PolicyView:
        """Return what holds for a subject, as the contract shows it."""
        return view(subject, self.policy(subject), self.policy(EVERYONE), self.now)

    def rules(self, subject: Subject) -> Rules:
        """Return what is in force for a subject."""
        return in_force(subject, self.policy(subject), self.policy(EVERYONE), self.now)

    def queue(self, name: str) -> QueueRules:
        """Return what is in force for a queue."""
        return self.rules(Subject(SubjectKind.QUEUE, name))  # type: ignore[return-value]

    def task(self, name: str) -> TaskRules:
        """Return what is in force for a task."""
        return self.rules(Subject(SubjectKind.TASK, name))  # type: ignore[return-value]

    def gate(self, name: str) -> GateRules:
        """Return what is in force for a gate."""
        return self.rules(Subject(SubjectKind.GATE, name))  # type: ignore[return-value]

    def limits(self, queue: str, tenant: str) -> Limits:
        """Return the limits of a tenant in a queue."""
        subjects = (Subject(SubjectKind.TENANT, tenant), EVERYONE, Subject(SubjectKind.QUEUE, queue))
        return limits_of(queue, *map(self.rules, subjects))  # type: ignore[arg-type]

    def paused(self, subject: Subject) -> Hold | None:
        """Return a pause that still holds."""
        return hold_in_force(self.policy(subject).paused, self.now)

    def ends(self, *subjects: Subject) -> Instant | None:
        """Return when the first override in force for these subjects ends by itself."""
        overrides = (self.policy(subject).override for subject in subjects)
        ends = [one.until for one in overrides if one is not None and one.until is not None]
        return min((until for until in ends if until > self.now), default=None)


async def read_policy_snapshot(
    server: Server, connection: Connection, subjects: Iterable[Subject]
) -> PolicySnapshot:
    """Read the policies of these subjects and of everyone, and the time."""
    sql = load("policies", server.schema)
    asked = {EVERYONE, *subjects}
    rows = await connection.fetch(sql.read, [one.kind.value for one in asked], [one.name for one in asked])
    known = {
        Subject(SubjectKind(row[0]), row[1]): unpack_policy(SubjectKind(row[0]), row[2:]) for row in rows
    }
    return PolicySnapshot(await connection.fetchval(sql.now, server.now()), known)
