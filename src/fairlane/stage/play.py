"""The application as a worker process finds it: `fairlane worker fairlane.stage.play:app`.

Its workers are ordinary ones. When one ends, it writes down how much of the processor it has used since it
was there.
"""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

import msgspec

from fairlane.stage.crew import Usage
from fairlane.stage.plan import make_app, read_plan
from fairlane.store.opening import open_store

_plan = read_plan(os.environ)

app = make_app(_plan)

if _plan.folder:
    open_store(_plan.url)  # imports the store's modules, and opens nothing: no job's cost
    _at_start = time.process_time()

    @atexit.register
    def write_usage() -> None:
        """Leave the figures where the run finds them."""
        usage = Usage(seconds=time.process_time() - _at_start)
        (Path(_plan.folder) / f"usage-{os.getpid()}.json").write_bytes(msgspec.json.encode(usage))
