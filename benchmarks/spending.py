"""Measure a budget under many claimants: what is spent in the end, against the ceiling (S59)."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from benchmarks.measured_store import MeasuredStore
from fairlane.lab.bench.driver import ALL, SUCCEEDED, Driver
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import SubjectKind, TaskRules
from fairlane.model.retry.decision import decide_settlement
from fairlane.store.contract.budgets import AccountsRequest
from fairlane.store.contract.claims import SettleRequest

CLAIMANTS: Final = 16
TENANTS: Final = 50
ESTIMATE: Final = 1_000
EXCESS: Final = 500
"""A job spends so much more than its estimate, or less, at most. In millionths."""


class Spending:
    """So many claimants, who take jobs one by one until there is no room left."""

    def __init__(self, place: str, jobs: int, number: int) -> None:
        """Make the stores: each claimant has its own."""
        self._bench = MeasuredStore(place, f"spending{number}")
        self._drivers = [Driver(self._bench.url) for _ in range(CLAIMANTS)]
        self._random = random.Random(number)
        self.jobs = jobs
        self.ceiling = jobs // 2 * ESTIMATE
        self.ran = 0
        self.spent = 0
        self._running: set[int] = set()

    async def run(self) -> int:
        """Let them claim and spend; return what the account says in the end."""
        await self._bench.store.upkeep.migrate()
        await self._bench.declare(SubjectKind.TASK, "call", TaskRules(budget="ai"))
        rules = BudgetRules(
            ceiling=self.ceiling, currency="USD", per="month", estimate=ESTIMATE, on_spent="park"
        )
        await self._bench.declare(SubjectKind.BUDGET, "ai", rules)
        await self._bench.fill(self.jobs, TENANTS, task="call")
        try:
            await asyncio.gather(*(self._work(number) for number in range(CLAIMANTS)))
            request = AccountsRequest(scope=ALL, budget="ai")
            reply = await self._bench.store.budgets.accounts(request)
            return sum(one.account.spent for one in reply.accounts)
        finally:
            for one in (self._bench, *self._drivers):
                await one.store.upkeep.aclose()

    async def _work(self, number: int) -> None:
        """Claim one job, spend what it takes, until nobody runs and nothing is claimed."""
        driver = self._drivers[number]
        while True:
            claims = await driver.claim(1)
            if not claims:
                if not self._running:
                    return
                await asyncio.sleep(0.001)
                continue
            self._running.add(number)
            await asyncio.sleep(0)  # somebody else claims meanwhile
            spent = ESTIMATE + self._random.randint(-EXCESS, EXCESS)
            settlement = decide_settlement(claims[0], SUCCEEDED, draw=0.5, spent=spent)
            request = SettleRequest(scope=ALL, worker="bench", settlements=(settlement,))
            await driver.store.claims.settle(request)
            self.ran += 1
            self.spent += spent
            self._running.remove(number)


async def measure(place: str, jobs: int, number: int = 0) -> dict[str, int]:
    """Let 16 claimants spend; all amounts are millionths."""
    spending = Spending(place, jobs, number)
    counted = await spending.run()
    if counted != spending.spent:
        message = f"jobs have spent {spending.spent}, counted are {counted}"
        raise AssertionError(message)
    return {
        "ran": spending.ran,
        "ceiling": spending.ceiling,
        "spent": counted,
        "allowed": CLAIMANTS * EXCESS,
    }
