"""The pages of the dashboard: one file per noun. A new one is a line in `PAGES`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.web.page import PageGroup
from fairlane.web.pages.audit import AUDIT
from fairlane.web.pages.dead import DEAD
from fairlane.web.pages.events import EVENTS
from fairlane.web.pages.guards import GUARDS
from fairlane.web.pages.help import HELP
from fairlane.web.pages.jobs import JOBS
from fairlane.web.pages.overview import OVERVIEW
from fairlane.web.pages.queues import QUEUES
from fairlane.web.pages.schedules import SCHEDULES
from fairlane.web.pages.settings import SETTINGS
from fairlane.web.pages.tasks import TASKS
from fairlane.web.pages.tenants import TENANTS
from fairlane.web.pages.workers import WORKERS

PAGES: Final[Sequence[PageGroup]] = (
    OVERVIEW,
    TENANTS,
    QUEUES,
    JOBS,
    DEAD,
    SCHEDULES,
    WORKERS,
    TASKS,
    GUARDS,
    EVENTS,
    AUDIT,
    SETTINGS,
    HELP,
)
"""In the order of the navigation."""
