"""What `term` and `hold` say at an instant is what the oracle says (S46, S54)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row

from fairlane.model.policy.limits import Limits, OnFull, Rate
from fairlane.model.policy.overrides import (
    EVERY,
    GateRules,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.store.contract.policies import (
    HoldRequest,
    OverrideRequest,
    PoliciesFacet,
    PutRequest,
    SubjectRequest,
)
from fairlane.store.policy_records import EVERYONE
from tests.contract.world import ALL, World
from tests.oracle.books import Books
from tests.oracle.core import Core
from tests.oracle.policies import OraclePolicies
from tests.servers.postgres import shared_url

QUEUES: Final = ("bulk", "mail")
TENANTS: Final = ("acme", "globex", "quiet")
GATES: Final = ("fax", "press")
TASKS: Final = ("print", "send")
CHANGES: Final = 14


class Chance:
    """Random policies. The same seed gives the same ones."""

    def __init__(self, seed: int, now: int) -> None:
        self.random = Random(seed)
        self.now = now

    def rate(self) -> Rate | None:
        """Draw a rate, or none."""
        rates = (None, Rate(50, "minute"), Rate(10, "second", burst=20), Rate(1, "day", burst=3))
        return self.random.choice(rates)

    def count(self) -> int | None:
        """Draw a limit, or none; one is larger than SQL's numbers."""
        return self.random.choice((None, 0, 1, 7, 10**12))

    def limits(self) -> Limits:
        """Draw limits."""
        on_full: OnFull = "reject" if self.random.random() < 0.5 else "warn"
        return Limits(waiting=self.count(), on_full=on_full, running=self.count(), rate=self.rate())

    def by_queue(self) -> dict[str, Limits]:
        """Draw limits for some queues, or for every queue."""
        return {
            queue: self.limits() for queue in self.random.sample((*QUEUES, EVERY), self.random.randrange(4))
        }

    def weight(self) -> float:
        """Draw a weight."""
        return self.random.choice((0.01, 0.5, 1.0, 3.0, 1000.0))

    def subject(self) -> Subject:
        """Draw a subject."""
        names = {
            SubjectKind.QUEUE: QUEUES,
            SubjectKind.TENANT: (*TENANTS, EVERY),
            SubjectKind.TASK: TASKS,
            SubjectKind.GATE: GATES,
        }
        kind = self.random.choice((*names, SubjectKind.TENANT, SubjectKind.TENANT))
        return Subject(kind, self.random.choice(names[kind]))

    def rules(self, kind: SubjectKind) -> Rules:
        """Draw what is declared for a subject of a kind."""
        if kind is SubjectKind.QUEUE:
            cost = self.random.choice(("jobs", "seconds"))
            return QueueRules(self.limits(), self.rate(), self.count(), cost)  # type: ignore[arg-type]
        if kind is SubjectKind.TENANT:
            return TenantRules(self.weight(), {}, self.by_queue())
        if kind is SubjectKind.TASK:
            return TaskRules(
                self.rate(), self.random.choice((None, *GATES)), breaker=self.random.choice((None, "mail"))
            )
        return GateRules(self.count(), self.rate())

    def change(self, kind: SubjectKind) -> PolicyChange:
        """Draw an override for a subject of a kind."""
        if kind is SubjectKind.QUEUE:
            return PolicyChange(limits=self.limits(), rate=self.rate())
        if kind is SubjectKind.TENANT:
            is_heavy = self.random.random() < 0.5
            return (
                PolicyChange(weight=self.weight()) if is_heavy else PolicyChange(queue_limits=self.by_queue())
            )
        return (
            PolicyChange(rate=self.rate()) if kind is SubjectKind.TASK else PolicyChange(limit=self.count())
        )

    def until(self) -> int | None:
        """Draw an end; some have passed already."""
        return self.random.choice((None, *(self.now + step * 1_000_000 for step in (-5, 5, 7, 9))))

    def request(self) -> tuple[str, Any]:
        """Draw a verb and what to ask of it."""
        subject, until = self.subject(), self.until()
        verbs = ("put", "override", "override", "reset", "pause", "resume", "close", "reopen")
        verb = self.random.choice(verbs)
        if verb == "put":
            return verb, PutRequest(scope=ALL, rules={subject: self.rules(subject.kind)})
        if verb == "override":
            change = self.change(subject.kind)
            return verb, OverrideRequest(scope=ALL, subject=subject, change=change, who="ops", until=until)
        if verb in {"pause", "close"} and subject.kind is not SubjectKind.GATE:
            return verb, HoldRequest(scope=ALL, subject=subject, who="ops", reason=verb, until=until)
        return "reset", SubjectRequest(scope=ALL, subject=subject)


@pytest.fixture
def link(schema: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A connection that sees the schema without its name."""
    options = f"-c search_path={schema}"
    with psycopg.connect(shared_url(), options=options, autocommit=True, row_factory=dict_row) as link:
        yield link


class Looked:
    """What the store's own functions say at one instant."""

    def __init__(self, link: psycopg.Connection[dict[str, Any]], now: int) -> None:
        self._link = link
        self._now = now

    def term(self, function: str, *names: str) -> dict[str, Any]:
        """Return the row in force, one of nothing if there is none."""
        row = self._ask(f"SELECT * FROM {function}", names)  # noqa: S608 (its own names)
        return row or dict.fromkeys(("rate_id", "gate", "gate_limit"))

    def value(self, function: str, *names: str) -> Any:
        """Return what a function returns."""
        found = self._ask(f"SELECT found FROM {function}", names, " AS found")  # noqa: S608 (its own names)
        return None if found is None else found["found"]

    def _ask(self, text: str, names: tuple[str, ...], alias: str = "") -> dict[str, Any] | None:
        places = ", ".join(["%s"] * (1 + len(names)))
        return self._link.execute(f"{text}({places}){alias}".encode(), (self._now, *names)).fetchone()


def bounded(count: int | None) -> int | None:
    """Return a limit as SQL's numbers keep it: nobody has two thousand million jobs."""
    return None if count is None else min(count, 2**31 - 1)


def check_limits(looked: Looked, books: Books, now: int, queue: str, tenant: str) -> None:
    """Compare a tenant's limits in a queue, and when they may change by themselves."""
    limits, row = books.limits(queue, tenant, now), looked.term("limits_of", queue, tenant)
    found = (row.get("waiting"), row.get("on_full") or "warn", row.get("running"), row["rate_id"])
    assert found == (bounded(limits.waiting), limits.on_full, bounded(limits.running), pace(limits.rate))
    layers = (Subject(SubjectKind.TENANT, tenant), EVERYONE, Subject(SubjectKind.QUEUE, queue))
    assert looked.value("limits_end", queue, tenant) == next(iter(books.ends(layers, now)), None)


def check_names(looked: Looked, books: Books, now: int) -> None:
    """Compare what holds for queues, tasks and gates themselves."""
    for queue in QUEUES:
        row, rules = looked.term("rule_of", "queue", queue), books.queue_rules(queue, now)
        assert (row["rate_id"], row.get("max_waiting"), row.get("cost") or "jobs") == (
            pace(rules.rate),
            bounded(rules.max_waiting),
            rules.cost,
        )
    for task in TASKS:
        row, task_rules = looked.term("rule_of", "task", task), books.task_rules(task, now)
        assert (row["rate_id"], row["gate"]) == (pace(task_rules.rate), task_rules.gate)
    for gate in GATES:
        row, gate_rules = looked.term("rule_of", "gate", gate), books.gate_rules(gate, now)
        assert (row["rate_id"], row["gate_limit"]) == (pace(gate_rules.rate), bounded(gate_rules.limit))


def pace(rate: Rate | None) -> str | None:
    """Return a rate by its name."""
    return None if rate is None else rate.rate_id


def check_holds(looked: Looked, books: Books, now: int) -> None:
    """Compare pauses and closes."""
    for verb, holds in (("paused", books.paused), ("closed", books.closed)):
        for kind, names in (
            (SubjectKind.QUEUE, QUEUES),
            (SubjectKind.TENANT, TENANTS),
            (SubjectKind.TASK, TASKS),
        ):
            for name in names:
                hold = books.hold(holds, Subject(kind, name), now)
                reason = looked.term("hold_of", verb, kind.value, name).get("reason")
                assert reason == (None if hold is None else hold.reason)


@pytest.mark.parametrize("seed", range(8))
async def test_a_look_up_gives_what_the_oracle_says_at_any_instant(
    world: World, link: psycopg.Connection[dict[str, Any]], seed: int
) -> None:
    """S54: after each change, around every end, for every queue, tenant, task and gate."""
    core, chance = Core(world.clock), Chance(seed, world.now)
    facets: tuple[PoliciesFacet, ...] = (OraclePolicies(core), world.store.policies)
    books = core.books
    for _ in range(CHANGES):
        verb, request = chance.request()
        answers = [await getattr(policies, verb)(request) for policies in facets]
        assert answers[0] == answers[1]
    for now in sorted({world.now + step * 1_000_000 + edge for step in (0, 5, 7, 9) for edge in (-1, 0, 1)}):
        looked = Looked(link, now)
        check_names(looked, books, now)
        check_holds(looked, books, now)
        for tenant in TENANTS:
            assert looked.value("stride_of", tenant) == books.stride(tenant, now)
            for queue in QUEUES:
                check_limits(looked, books, now, queue, tenant)


async def test_an_override_above_everyone_follows_when_that_changes(
    world: World, link: psycopg.Connection[dict[str, Any]]
) -> None:
    """S54: a tenant with an override for every queue still has everyone's own limits for one of them."""
    policies = world.store.policies
    above = PolicyChange(queue_limits={EVERY: Limits(running=2)})
    acme = Subject(SubjectKind.TENANT, "acme")
    for running in (1, 3):
        rules = TenantRules(limits={"bulk": Limits(running=running)})
        await policies.put(PutRequest(scope=ALL, rules={EVERYONE: rules}))
        looked = Looked(link, world.now)
        if running == 1:
            await policies.override(OverrideRequest(scope=ALL, subject=acme, change=above, who="ops"))
        assert looked.term("limits_of", "bulk", "acme")["running"] == running
        assert looked.term("limits_of", "mail", "acme")["running"] == 2
