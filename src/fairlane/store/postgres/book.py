"""The policies of some subjects at one instant, read from `policy`. For verbs that decide in the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlane.model.instants import Instant
from fairlane.model.layers import GateRules, Hold, Kind, QueueRules, Rules, Subject, TaskRules, limits_of
from fairlane.model.limits import Limits
from fairlane.store.contract.policies import PolicyView
from fairlane.store.policy import EVERYONE, NOTHING, Policy, in_force, living, unpacked, view
from fairlane.store.postgres.statements import load

if TYPE_CHECKING:
    from fairlane.store.postgres.connect import Connection, Server


class Book:
    """What is known of some subjects, and of everyone; a subject that was not asked for has nothing."""

    def __init__(self, now: Instant, known: dict[Subject, Policy]) -> None:
        """Hold what was read."""
        self.now = now
        self.known = known

    def policy(self, subject: Subject) -> Policy:
        """Give what is stored about a subject."""
        return self.known.get(subject, NOTHING)

    def view(self, subject: Subject) -> PolicyView:
        """Show what holds for a subject."""
        return view(subject, self.policy(subject), self.policy(EVERYONE), self.now)

    def rules(self, subject: Subject) -> Rules:
        """Give what is in force for a subject."""
        return in_force(subject, self.policy(subject), self.policy(EVERYONE), self.now)

    def queue(self, name: str) -> QueueRules:
        """Give what is in force for a queue."""
        return self.rules(Subject(Kind.QUEUE, name))  # type: ignore[return-value]

    def task(self, name: str) -> TaskRules:
        """Give what is in force for a task."""
        return self.rules(Subject(Kind.TASK, name))  # type: ignore[return-value]

    def gate(self, name: str) -> GateRules:
        """Give what is in force for a gate."""
        return self.rules(Subject(Kind.GATE, name))  # type: ignore[return-value]

    def limits(self, queue: str, tenant: str) -> Limits:
        """Give the limits of a tenant in a queue."""
        subjects = (Subject(Kind.TENANT, tenant), EVERYONE, Subject(Kind.QUEUE, queue))
        return limits_of(queue, *map(self.rules, subjects))  # type: ignore[arg-type]

    def paused(self, subject: Subject) -> Hold | None:
        """Give a pause that still holds."""
        return living(self.policy(subject).paused, self.now)

    def ends(self, *subjects: Subject) -> Instant | None:
        """Say when the first living override of these subjects ends by itself."""
        overrides = (self.policy(subject).override for subject in subjects)
        ends = [one.until for one in overrides if one is not None and one.until is not None]
        return min((until for until in ends if until > self.now), default=None)


async def open_book(server: Server, connection: Connection, subjects: Iterable[Subject]) -> Book:
    """Read the policies of these subjects and of everyone, and the time."""
    sql = load("policies", server.schema)
    asked = {EVERYONE, *subjects}
    rows = await connection.fetch(sql.read, [one.kind.value for one in asked], [one.name for one in asked])
    known = {Subject(Kind(row[0]), row[1]): unpacked(Kind(row[0]), row[2:]) for row in rows}
    return Book(await connection.fetchval(sql.now, server.now()), known)
