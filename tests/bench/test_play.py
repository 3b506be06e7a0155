"""What a job costs: from when its worker has started, not from when its process has."""

from __future__ import annotations

import logging
import time

import pytest

from fairlane.stage.play import _Meter


@pytest.mark.parametrize(("event", "is_start"), [("worker_started", True), ("worker_left", False)])
def test_the_processor_is_counted_from_when_the_worker_has_started(
    monkeypatch: pytest.MonkeyPatch, event: str, is_start: bool
) -> None:
    """Else the second process of two would be charged to the jobs for being there."""
    monkeypatch.setattr(time, "process_time", lambda: 1.0)
    meter = _Meter()
    monkeypatch.setattr(time, "process_time", lambda: 2.5)
    meter.emit(logging.makeLogRecord({"event": event}))
    assert meter.began == (2.5 if is_start else 1.0)
