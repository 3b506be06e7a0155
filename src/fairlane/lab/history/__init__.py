"""Check from a ledger alone whether a run kept Fairlane's promises. Asks no store; pure."""

from __future__ import annotations

from fairlane.lab.history.checker import check
from fairlane.lab.history.verdict import LedgerCounts, Reruns, Verdict, Violation, ViolationKind

__all__ = ["LedgerCounts", "Reruns", "Verdict", "Violation", "ViolationKind", "check"]
