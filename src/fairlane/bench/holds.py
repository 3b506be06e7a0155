"""Hold very many jobs back, in each of the ways that a claim must pass by. Measures nothing."""

from __future__ import annotations

from typing import Final

from fairlane.bench.driver import Driver
from fairlane.model.layers import GateRules, Kind, TaskRules, TenantRules
from fairlane.model.limits import Limits, Rate

HOLDS: Final = ("pause", "limit", "rate", "paused task", "full gate")
"""The first three hold a tenant, the others a task of one."""

HELD: Final = "held-"
"""What the names of held tenants begin with."""

_ONE_A_DAY: Final = Rate(1, "day")
_TRIES: Final = 3


async def fill_held(driver: Driver, by: str, jobs: int) -> None:
    """Enqueue so many jobs of one tenant, held from the first on."""
    # In a store that all cases share, what one has held must not be another's.
    tenant, task, gate = (f"{HELD}{driver.queue}{part}" for part in ("-0", "-task", "-gate"))
    match by:
        case "pause":
            await driver.pause(Kind.TENANT, tenant)
        case "limit":
            limits = {driver.queue: Limits(running=1)}
            await driver.declare(Kind.TENANT, tenant, TenantRules(limits=limits))
        case "rate":
            limits = {driver.queue: Limits(rate=_ONE_A_DAY)}
            await driver.declare(Kind.TENANT, tenant, TenantRules(limits=limits))
        case "paused task":
            await driver.pause(Kind.TASK, task)
        case _:
            await driver.declare(Kind.GATE, gate, GateRules(limit=1))
            await driver.declare(Kind.TASK, task, TaskRules(gate=gate))
    await driver.fill(jobs, 1, tenant.removesuffix("0"), task=task)


async def use_up(driver: Driver, by: str) -> None:
    """Claim the one job that a limit, a rate or a gate lets through: from now on it holds the others."""
    if by in {"limit", "rate", "full gate"}:
        for _ in range(_TRIES):
            await driver.claim(1)
