"""Fill a store with many jobs that are held back, in each way that a claim must skip. Measures nothing."""

from __future__ import annotations

from typing import Final

from fairlane.lab.bench.driver import Driver
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, SubjectKind, TaskRules, TenantRules

HOLDS: Final = ("pause", "limit", "rate", "paused task", "full gate")
"""The first three hold back a tenant, the others one of its tasks."""

HELD: Final = "held-"
"""The prefix of the names of held tenants."""

_ONE_A_DAY: Final = Rate(1, "day")
_TRIES: Final = 3


async def fill_held(driver: Driver, by: str, jobs: int) -> None:
    """Enqueue this many jobs of one tenant, held back from the first on."""
    # The cases may share a store: each needs its own tenant, task and gate.
    tenant, task, gate = (f"{HELD}{driver.queue}{part}" for part in ("-0", "-task", "-gate"))
    match by:
        case "pause":
            await driver.pause(SubjectKind.TENANT, tenant)
        case "limit":
            limits = {driver.queue: Limits(running=1)}
            await driver.declare(SubjectKind.TENANT, tenant, TenantRules(limits=limits))
        case "rate":
            limits = {driver.queue: Limits(rate=_ONE_A_DAY)}
            await driver.declare(SubjectKind.TENANT, tenant, TenantRules(limits=limits))
        case "paused task":
            await driver.pause(SubjectKind.TASK, task)
        case _:
            await driver.declare(SubjectKind.GATE, gate, GateRules(limit=1))
            await driver.declare(SubjectKind.TASK, task, TaskRules(gate=gate))
    await driver.fill(jobs, 1, tenant.removesuffix("0"), task=task)


async def use_up(driver: Driver, by: str) -> None:
    """Claim the one job that a limit, rate or gate lets through, so that it holds back the others."""
    if by in {"limit", "rate", "full gate"}:
        for _ in range(_TRIES):
            await driver.claim(1)
