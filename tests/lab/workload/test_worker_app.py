"""The CPU time of a worker counts from its start-up, not from the start of its process."""

from __future__ import annotations

import logging
import time

import pytest

from fairlane.lab.workload.worker_app import _Meter


@pytest.mark.parametrize(("event", "is_start"), [("worker_started", True), ("worker_left", False)])
def test_the_processor_is_counted_from_when_the_worker_has_started(
    monkeypatch: pytest.MonkeyPatch, event: str, is_start: bool
) -> None:
    """Otherwise the start-up of a second process would be charged to the jobs."""
    monkeypatch.setattr(time, "process_time", lambda: 1.0)
    meter = _Meter()
    monkeypatch.setattr(time, "process_time", lambda: 2.5)
    meter.emit(logging.makeLogRecord({"event": event}))
    assert meter.began == (2.5 if is_start else 1.0)
