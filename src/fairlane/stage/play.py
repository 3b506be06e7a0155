"""The application as a worker process finds it: `fairlane worker fairlane.stage.play:app`.

Its workers are ordinary ones. When one ends, it writes down how much of the processor it has used since it
said that it had started: what starting takes is no cost of a job.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from pathlib import Path

import msgspec

from fairlane.stage.crew import Usage
from fairlane.stage.plan import make_app, read_plan

_plan = read_plan(os.environ)

app = make_app(_plan)


class _Meter(logging.Handler):
    """Remembers what was used of the processor when the worker said that it had started."""

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
        """Leave the figures where the run finds them."""
        usage = Usage(seconds=time.process_time() - _meter.began)
        (Path(_plan.folder) / f"usage-{os.getpid()}.json").write_bytes(msgspec.json.encode(usage))
