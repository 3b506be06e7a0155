"""The application of the workers that campaigns harm: ``fairlane worker tests.campaigns.application:app``.

Where its store is, where it writes down what it sees, and by which clock it goes, is in its environment.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.campaigns.clock import SharedClock
from tests.processes.program import keep_book, make_app

if _record := os.environ.get("CAMPAIGN_RECORD"):
    keep_book(Path(_record))
_clock = os.environ.get("CAMPAIGN_CLOCK")

app = make_app(os.environ.get("CAMPAIGN_STORE", "nowhere"), SharedClock(Path(_clock)) if _clock else None)
