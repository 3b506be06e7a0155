"""What is allowed, read from `policy` and kept in memory until somebody changes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import apsw

from fairlane.model.fairness import stride
from fairlane.model.instants import Instant
from fairlane.model.layers import (
    EVERY,
    GateRules,
    Hold,
    Kind,
    QueueRules,
    Rules,
    Subject,
    TaskRules,
    TenantRules,
    is_living,
    limits_of,
)
from fairlane.model.limits import Limits
from fairlane.store.policy import EVERYONE, NOTHING, Policy, in_force, living, packed, unpacked
from fairlane.store.sqlite.asking import all_rows, one_row, one_value
from fairlane.store.sqlite.bulk import as_array
from fairlane.store.sqlite.statements import load

_SQL = load("policies")

_MOST_KEPT: Final = 50_000


class Rulebook:
    """Policies by subject, read once; `meta.policies` counts the changes that make them stale."""

    def __init__(self, db: apsw.Connection) -> None:
        """Know nothing yet."""
        self._db = db
        self._version = -1
        self._known: dict[Subject, Policy] = {}
        self._ruled: dict[str, str] = {}
        self._limits: dict[tuple[str, str], tuple[Limits, Instant | None]] = {}
        self._in_force: dict[tuple[Kind, str], tuple[Rules, Instant | None]] = {}

    def check(self) -> None:
        """Forget everything if another process, or a verb before, changed a policy."""
        version = one_value(self._db, _SQL.version) or 0
        if version != self._version or len(self._known) + len(self._ruled) > _MOST_KEPT:
            self.forget()
            self._version = version

    def forget(self) -> None:
        """Read everything anew."""
        self._known.clear()
        self._ruled.clear()
        self._limits.clear()
        self._in_force.clear()
        self._version = -1

    def policy(self, subject: Subject) -> Policy:
        """Give what is stored about a subject."""
        found = self._known.get(subject)
        if found is None:
            row = one_row(self._db, _SQL.read, (subject.kind.value, subject.name))
            found = self._known[subject] = NOTHING if row is None else unpacked(subject.kind, row)
        return found

    def gather(self, tenants: Iterable[str]) -> None:
        """Read the policies of many tenants at once."""
        unknown = [name for name in tenants if name not in self._ruled]
        if not unknown:
            return
        self._ruled |= dict.fromkeys(unknown, EVERY)
        for name, *row in all_rows(self._db, _SQL.read_many, (Kind.TENANT.value, as_array(unknown))):
            self._ruled[name] = name
            self._known[Subject(Kind.TENANT, name)] = unpacked(Kind.TENANT, row)

    def ruled_as(self, tenant: str) -> str:
        """Give the name whose rules hold for a tenant: most have none of their own."""
        found = self._ruled.get(tenant)
        if found is None:
            is_own = self.policy(Subject(Kind.TENANT, tenant)) is not NOTHING
            found = self._ruled[tenant] = tenant if is_own else EVERY
        return found

    def write(self, subject: Subject, policy: Policy) -> None:
        """Store what is now known about a subject."""
        self._db.execute(_SQL.write, (subject.kind.value, subject.name, *packed(policy)))
        self._db.execute(_SQL.changed)
        self.forget()

    def rules(self, subject: Subject, now: Instant) -> Rules:
        """Give what is in force for a subject."""
        return in_force(subject, self.policy(subject), self.policy(EVERYONE), now)

    def _remembered(self, kind: Kind, name: str, now: Instant) -> Rules:
        """Give what is in force; worked out once, until an override ends by itself."""
        found = self._in_force.get((kind, name))
        if found is None or not is_living(found[1], now):
            subject = Subject(kind, name)
            found = (self.rules(subject, now), self.ends((subject, EVERYONE), now))
            self._in_force[kind, name] = found
        return found[0]

    def queue(self, name: str, now: Instant) -> QueueRules:
        """Give what is in force for a queue."""
        return self._remembered(Kind.QUEUE, name, now)  # type: ignore[return-value]

    def tenant(self, name: str, now: Instant) -> TenantRules:
        """Give what is in force for a tenant."""
        return self._remembered(Kind.TENANT, self.ruled_as(name), now)  # type: ignore[return-value]

    def task(self, name: str, now: Instant) -> TaskRules:
        """Give what is in force for a task."""
        return self._remembered(Kind.TASK, name, now)  # type: ignore[return-value]

    def gate(self, name: str, now: Instant) -> GateRules:
        """Give what is in force for a gate."""
        return self._remembered(Kind.GATE, name, now)  # type: ignore[return-value]

    def limits(self, queue: str, tenant: str, now: Instant) -> Limits:
        """Give the limits of a tenant in a queue; worked out once, until an override ends by itself."""
        tenant = self.ruled_as(tenant)
        found = self._limits.get((queue, tenant))
        if found is not None and is_living(found[1], now):
            return found[0]
        everyone = self.rules(EVERYONE, now)
        limits = limits_of(queue, self.tenant(tenant, now), everyone, self.queue(queue, now))  # type: ignore[arg-type]
        subjects = (Subject(Kind.QUEUE, queue), Subject(Kind.TENANT, tenant), EVERYONE)
        self._limits[queue, tenant] = (limits, self.ends(subjects, now))
        return limits

    def stride(self, tenant: str, now: Instant) -> int:
        """Give what a job of this tenant costs in virtual time."""
        return stride(self.tenant(tenant, now).weight)

    def paused(self, subject: Subject, now: Instant) -> Hold | None:
        """Give a pause that still holds."""
        return living(self.policy(subject).paused, now)

    def closed(self, subject: Subject, now: Instant) -> Hold | None:
        """Give a close that still holds."""
        return living(self.policy(subject).closed, now)

    def ends(self, subjects: tuple[Subject, ...], now: Instant) -> Instant | None:
        """Say when the first living override of these subjects ends by itself."""
        overrides = (self.policy(subject).override for subject in subjects)
        ends = [one.until for one in overrides if one is not None and one.until is not None]
        return min((until for until in ends if until > now), default=None)
