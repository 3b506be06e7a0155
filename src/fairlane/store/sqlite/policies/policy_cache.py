"""Policies by subject, cached in memory until one changes. Knows no job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import apsw

from fairlane.model.instants import Instant
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import (
    EVERY,
    BreakerRules,
    GateRules,
    Hold,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    is_active,
    limits_of,
)
from fairlane.model.scheduling.fairness import stride
from fairlane.store.policy_records import (
    EVERYONE,
    NO_POLICY,
    StoredPolicy,
    hold_in_force,
    in_force,
    pack_policy,
    unpack_policy,
)
from fairlane.store.sqlite.query import all_rows, json_array, one_row, one_value
from fairlane.store.sqlite.statements import load

_SQL = load("policies")

_MAX_CACHED: Final = 50_000


class PolicyCache:
    """Policies, current as long as `meta.policies` has the same number; each change increments it."""

    def __init__(self, db: apsw.Connection) -> None:
        """Start empty."""
        self._db = db
        self._version = -1
        self._known: dict[Subject, StoredPolicy] = {}
        self._rules_names: dict[str, str] = {}
        self._limits: dict[tuple[str, str], tuple[Limits, Instant | None]] = {}
        self._in_force: dict[tuple[SubjectKind, str], tuple[Rules, Instant | None]] = {}
        self._has_budgets: bool | None = None

    def drop_if_stale(self) -> None:
        """Empty the cache if another process, or an earlier verb, changed a policy."""
        version = one_value(self._db, _SQL.version) or 0
        if version != self._version or len(self._known) + len(self._rules_names) > _MAX_CACHED:
            self.drop_cache()
            self._version = version

    def drop_cache(self) -> None:
        """Empty the cache."""
        self._known.clear()
        self._rules_names.clear()
        self._limits.clear()
        self._in_force.clear()
        self._has_budgets = None
        self._version = -1

    def policy(self, subject: Subject) -> StoredPolicy:
        """Return the stored policy of a subject."""
        found = self._known.get(subject)
        if found is None:
            row = one_row(self._db, _SQL.read, (subject.kind.value, subject.name))
            found = self._known[subject] = NO_POLICY if row is None else unpack_policy(subject.kind, row)
        return found

    def preload(self, tenants: Iterable[str]) -> None:
        """Read the policies of many tenants at once."""
        unknown = [name for name in tenants if name not in self._rules_names]
        if not unknown:
            return
        self._rules_names |= dict.fromkeys(unknown, EVERY)
        for name, *row in all_rows(self._db, _SQL.read_many, (SubjectKind.TENANT.value, json_array(unknown))):
            self._rules_names[name] = name
            self._known[Subject(SubjectKind.TENANT, name)] = unpack_policy(SubjectKind.TENANT, row)

    def rules_name(self, tenant: str) -> str:
        """Return the name whose rules apply to a tenant: `*` for tenants without a policy of their own."""
        found = self._rules_names.get(tenant)
        if found is None:
            is_own = self.policy(Subject(SubjectKind.TENANT, tenant)) is not NO_POLICY
            found = self._rules_names[tenant] = tenant if is_own else EVERY
        return found

    def write(self, subject: Subject, policy: StoredPolicy) -> None:
        """Store the policy of a subject; every process notices the change."""
        self._db.execute(_SQL.write, (subject.kind.value, subject.name, *pack_policy(policy)))
        self._db.execute(_SQL.changed)
        self.drop_cache()

    def rules(self, subject: Subject, now: Instant) -> Rules:
        """Return the rules in force for a subject."""
        return in_force(subject, self.policy(subject), self.policy(EVERYONE), now)

    def _remembered(self, kind: SubjectKind, name: str, now: Instant) -> Rules:
        """Return the rules in force; computed once, until an override expires."""
        found = self._in_force.get((kind, name))
        if found is None or not is_active(found[1], now):
            subject = Subject(kind, name)
            found = (self.rules(subject, now), self.ends((subject, EVERYONE), now))
            self._in_force[kind, name] = found
        return found[0]

    def queue(self, name: str, now: Instant) -> QueueRules:
        """Return the rules in force for a queue."""
        return self._remembered(SubjectKind.QUEUE, name, now)  # type: ignore[return-value]

    def tenant(self, name: str, now: Instant) -> TenantRules:
        """Return the rules in force for a tenant."""
        return self._remembered(SubjectKind.TENANT, self.rules_name(name), now)  # type: ignore[return-value]

    def task(self, name: str, now: Instant) -> TaskRules:
        """Return the rules in force for a task."""
        return self._remembered(SubjectKind.TASK, name, now)  # type: ignore[return-value]

    def gate(self, name: str, now: Instant) -> GateRules:
        """Return the rules in force for a gate."""
        return self._remembered(SubjectKind.GATE, name, now)  # type: ignore[return-value]

    def breaker(self, name: str, now: Instant) -> BreakerRules:
        """Return the rules in force for a breaker."""
        return self._remembered(SubjectKind.BREAKER, name, now)  # type: ignore[return-value]

    def budget(self, name: str, now: Instant) -> BudgetRules:
        """Return the rules in force for a budget."""
        return self._remembered(SubjectKind.BUDGET, name, now)  # type: ignore[return-value]

    @property
    def has_budgets(self) -> bool:
        """Whether any budget was ever declared: without one, no claim holds anything of it."""
        if self._has_budgets is None:
            self._has_budgets = bool(one_value(self._db, _SQL.has_any, (SubjectKind.BUDGET.value,)))
        return self._has_budgets

    def limits(self, queue: str, tenant: str, now: Instant) -> Limits:
        """Return the limits of a tenant in a queue; computed once, until an override expires."""
        tenant = self.rules_name(tenant)
        found = self._limits.get((queue, tenant))
        if found is not None and is_active(found[1], now):
            return found[0]
        everyone = self.rules(EVERYONE, now)
        limits = limits_of(queue, self.tenant(tenant, now), everyone, self.queue(queue, now))  # type: ignore[arg-type]
        subjects = (Subject(SubjectKind.QUEUE, queue), Subject(SubjectKind.TENANT, tenant), EVERYONE)
        self._limits[queue, tenant] = (limits, self.ends(subjects, now))
        return limits

    def stride(self, tenant: str, now: Instant) -> int:
        """Return the virtual time that one job of a tenant costs."""
        return stride(self.tenant(tenant, now).weight)

    def paused(self, subject: Subject, now: Instant) -> Hold | None:
        """Return the pause of a subject, or None if it has none or it is over."""
        return hold_in_force(self.policy(subject).paused, now)

    def closed(self, subject: Subject, now: Instant) -> Hold | None:
        """Return the close of a subject, or None if it has none or it is over."""
        return hold_in_force(self.policy(subject).closed, now)

    def ends(self, subjects: tuple[Subject, ...], now: Instant) -> Instant | None:
        """Return when the first override of these subjects expires, or None if none does."""
        overrides = (self.policy(subject).override for subject in subjects)
        ends = [one.until for one in overrides if one is not None and one.until is not None]
        return min((until for until in ends if until > now), default=None)
