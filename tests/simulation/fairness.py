"""Check that claims are fair: nobody gets more than a tenant that waits all the time (S41).

While a tenant A always has claimable jobs, no tenant B, however it comes and goes, is served more virtual
time than A but for one job of each. Knows no virtual clock: it only counts who was served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class FairnessCheck:
    """Who was served since each backlogged tenant last had nothing to wait for."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._since: dict[tuple[str, str], Counter[str]] = {}
        self._longest: Counter[tuple[str, str]] = Counter()
        self._owed: Counter[tuple[str, str]] = Counter()

    def restart(self, queue: str | None = None) -> None:
        """Start over: the policies of the tenants have changed."""
        self._since = {key: served for key, served in self._since.items() if queue not in {None, key[0]}}

    def returned(self, queue: str, tenant: str, stride: int) -> None:
        """Note that a job came back unstarted: its tenant was charged for nothing, and is owed it (S68)."""
        self._owed[queue, tenant] += stride

    def served(
        self, queue: str, tenants: list[str], backlogged: set[str], strides: Mapping[str, int]
    ) -> list[str]:
        """Note one claim; return who got too much compared with whom."""
        for tenant, stride in strides.items():
            self._longest[queue, tenant] = max(self._longest[queue, tenant], stride)
        self._since = {
            key: one for key, one in self._since.items() if key[0] != queue or key[1] in backlogged
        }
        charges = [(tenant, self._charge(queue, tenant, strides[tenant])) for tenant in tenants]
        for tenant in backlogged:
            since = self._since.setdefault((queue, tenant), Counter())
            for other, charge in charges:
                since[other] += charge
        return [
            f"in {queue}, {other} was served {since[other]} beside {since[own]} of {own}, who always waited"
            for (name, own), since in self._since.items()
            if name == queue
            for other in set(tenants)
            if other != own
            and since[other] - since[own] > self._longest[queue, own] + self._longest[queue, other]
        ]

    def _charge(self, queue: str, tenant: str, stride: int) -> int:
        """Return what a job counts: nothing of what its tenant is owed."""
        paid = min(stride, self._owed[queue, tenant])
        self._owed[queue, tenant] -= paid
        return stride - paid
