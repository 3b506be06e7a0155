"""Judge breakers and budgets, and let go of both once a world is healed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from fairlane.lab.ledger import Record
from fairlane.model.instants import MINUTE, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.policy.amounts import LARGEST
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import BreakersRequest, ChangeBreakerRequest
from fairlane.store.contract.budgets import AccountsRequest, SpendRequest
from fairlane.store.contract.claims import ClaimReply, RenewRequest, SettleRequest
from fairlane.store.contract.policies import OverrideRequest
from tests.simulation.breakers import BreakersCheck
from tests.simulation.budgets import BudgetsCheck, Spent
from tests.simulation.policies import Mirror
from tests.simulation.provider import Guards
from tests.simulation.server import Server

ALL: Final = Scope.all()


class GuardsCheck:
    """Hears of everything that is done to the store about guards, and says what should not have been."""

    def __init__(
        self,
        policies: Mirror,
        clock: Callable[[], Instant],
        elapsed: Callable[[], Micros],
        fence_of: Callable[[UUID], int | None],
    ) -> None:
        """Share what the onlooker knows."""
        self.breakers = BreakersCheck(policies, clock, elapsed, fence_of)
        self.budgets = BudgetsCheck(policies, clock, elapsed)

    def heard(self, facet: str, verb: str, request: Any, value: Any) -> list[str]:
        """Hear what breakers were told, asked or set, and of a ceiling that is changed."""
        match facet, verb:
            case "breakers", "report":
                return list(self.breakers.reported(request, value))
            case "breakers", "enter":
                return list(self.breakers.entered(request, value))
            case "breakers", "change":
                return list(self.breakers.changed(request, value))
            case "policies", ("override" | "reset") if request.subject.kind is SubjectKind.BUDGET:
                self.budgets.changed(request.subject.name)
        return []

    def claimed(self, claim: Claim, reply: ClaimReply) -> list[str]:
        """Hear of a claim, before it counts as live."""
        is_permitted = claim.job.id in reply.permits
        return [*self.breakers.claimed(claim, is_permitted=is_permitted), *self.budgets.claimed(claim)]

    def forgot(self, claim: Claim) -> None:
        """Hear of a claim that the store has lost."""
        self.breakers.forgot(claim.job.id)
        self.budgets.forgot(claim)

    def settled(self, request: SettleRequest) -> None:
        """Hear of settlements, good or stale: what they report counts (S113)."""
        for one in request.settlements:
            self.budgets.reported(one.id, one.fence, one.spent, is_over=True)

    def renewed(self, request: RenewRequest, stale: tuple[UUID, ...]) -> None:
        """Hear of renewals; what a stale one reports does not count."""
        for one in request.renewals:
            if one.spent and one.id not in stale:
                self.budgets.reported(one.id, one.fence, one.spent, is_over=False)


def heal(server: Server, guards: Guards) -> None:
    """Hold nothing back for longer than a breaker does by itself."""
    for budget in guards.budgets:
        subject, change = Subject(SubjectKind.BUDGET, budget.name), PolicyChange(ceiling=LARGEST)
        server.perform(
            "policies", "override", OverrideRequest(scope=ALL, subject=subject, change=change, who="ops")
        )
    reply = server.perform("breakers", "list", BreakersRequest(scope=ALL))
    for one in reply.breakers:
        if one.state.open_until > reply.now + MINUTE:
            server.perform("breakers", "change", ChangeBreakerRequest(scope=ALL, key=one.key, verb="reset"))


def judge(server: Server, guards: Guards, check: GuardsCheck) -> tuple[list[str], list[Record]]:
    """Read the accounts of a store at rest; say what is wrong, and what an outside ledger would hold."""
    told: Spent = Spent()
    wrong: list[str] = []
    for budget in guards.budgets:
        name = budget.name
        accounts = server.perform("budgets", "accounts", AccountsRequest(scope=ALL, budget=name)).accounts
        left = {one.tenant: one.account.reserved for one in accounts if one.account.reserved}
        if left:
            wrong.append(f"budget {name} has reserved {left}, but nothing runs")
        periods = server.perform("budgets", "spend", SpendRequest(scope=ALL, budget=name)).periods
        for at in periods:
            reply = server.perform("budgets", "spend", SpendRequest(scope=ALL, budget=name, starts_at=at))
            for who, amount in reply.spent:
                told[name, who.tenant, who.task] += amount
    wrong += check.budgets.differs(told)
    return wrong, [*check.breakers.records, *check.budgets.records(told)]
