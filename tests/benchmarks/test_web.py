"""The benchmark of the dashboard starts real web processes, and each of its figures is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from benchmarks import web
from benchmarks.figures import Figures
from tests.web.addresses import pages
from tools.proofs.measurement import ROOT


def test_pages_viewers_and_the_start_are_measured(tmp_path: Path) -> None:
    """Every declared page is asked for, the viewers are sent changes, and every goal is of a figure."""
    sizes = {"jobs": 200, "tenants": 5, "asks": 2, "viewers": 3, "work": 200, "rounds": 1}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    ran = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-m", "benchmarks.web", *words, "--json", "--folder", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = {one.name: one for one in msgspec.json.decode(ran.stdout, type=Figures).measures}
    assert all(one.median is not None and one.median > 0 for one in found.values())
    assert {name for name, one in found.items() if one.goal is not None} == web.GOALS.keys()
    assert {f"{page.path}, p95" for page in pages()} <= found.keys()
    assert list(tmp_path.iterdir()) == []
