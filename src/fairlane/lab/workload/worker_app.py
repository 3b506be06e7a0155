"""The application of a run's workers: `fairlane worker fairlane.lab.workload.worker_app:app`.

The workers are ordinary ones. On exit each writes its CPU time since its start-up was complete: start-up is
not part of the cost of a job.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from pathlib import Path

import msgspec

from fairlane.lab.workload.plan import make_app, read_plan
from fairlane.lab.workload.worker_processes import CpuUsage

_plan = read_plan(os.environ)

app = make_app(_plan)


class _Meter(logging.Handler):
    """Remembers the CPU time at which the worker logged that it had started."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.process_time()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) == "worker_started":
            self.began = time.process_time()


if _plan.folder:
    _meter = _Meter()
    logging.getLogger("fairlane.worker").addHandler(_meter)

    @atexit.register
    def write_usage() -> None:
        """Write the CPU time where the run reads it."""
        usage = CpuUsage(seconds=time.process_time() - _meter.began)
        (Path(_plan.folder) / f"usage-{os.getpid()}.json").write_bytes(msgspec.json.encode(usage))
