"""Render the output of `benchmarks.peers`: Fairlane beside other job queues."""

from __future__ import annotations

from typing import Final

import msgspec

from benchmarks.peers.page import render
from benchmarks.peers.report import PeersReport
from fairlane.lab.bench.report import Measure
from tools.proofs.measurement import SMALL, Measurement

_HEAD: Final = """\
# Fairlane beside other job queues

Generated from `docs/proofs/peers.json`, which `make proofs` writes; do not edit by hand.
What the figures mean: [Compare with other job queues](../how-to/compare-with-other-job-queues.md).
"""


def figures(measurement: Measurement) -> list[Measure]:
    """Return the ratio of Fairlane's figures to each peer's; the scenario is the peer."""
    return list(msgspec.json.decode(measurement.report, type=PeersReport).ratios)


def page(measurement: Measurement) -> str:
    """Return the page."""
    report = msgspec.json.decode(measurement.report, type=PeersReport)
    small = [SMALL, ""] if measurement.small else []
    head = [_HEAD, "```sh", measurement.command, "```", "", *small, f"Commit {measurement.commit}.", ""]
    return "\n".join([*head, *render(report)]) + "\n"
