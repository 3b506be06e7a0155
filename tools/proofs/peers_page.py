"""Lay out what `benchmarks.peers` prints: Fairlane beside other job queues."""

from __future__ import annotations

from typing import Final

import msgspec

from benchmarks.peers.page import render
from benchmarks.peers.report import PeersReport
from fairlane.bench.report import Measure
from tools.proofs.kept import SMALL, Kept

_HEAD: Final = """\
# Fairlane beside other job queues

Generated from `docs/proofs/peers.json`, which `make proofs` writes; do not edit by hand.
What the figures mean: [Compare with other job queues](../how-to/compare-with-other-job-queues.md).
"""


def figures(kept: Kept) -> list[Measure]:
    """Give how many times each peer's figures Fairlane's are; the scenario is the peer."""
    return list(msgspec.json.decode(kept.report, type=PeersReport).ratios)


def page(kept: Kept) -> str:
    """Give the page."""
    report = msgspec.json.decode(kept.report, type=PeersReport)
    small = [SMALL, ""] if kept.small else []
    head = [_HEAD, "```sh", kept.command, "```", "", *small, f"Commit {kept.commit}.", ""]
    return "\n".join([*head, *render(report)]) + "\n"
