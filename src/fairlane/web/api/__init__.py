"""The REST API: one router per noun. A new one is a line in `GROUPS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.web.api.about import ABOUT
from fairlane.web.api.audit import AUDIT
from fairlane.web.api.breakers import BREAKERS
from fairlane.web.api.budgets import BUDGETS
from fairlane.web.api.dead import DEAD
from fairlane.web.api.dead_bulk import DEAD_BULK
from fairlane.web.api.debug import DEBUG
from fairlane.web.api.duties import DUTIES
from fairlane.web.api.events import EVENTS
from fairlane.web.api.gates import GATES
from fairlane.web.api.history import HISTORY
from fairlane.web.api.job_bulk import JOB_BULK
from fairlane.web.api.job_changes import JOB_CHANGES
from fairlane.web.api.job_enqueue import JOB_ENQUEUE
from fairlane.web.api.jobs import JOBS
from fairlane.web.api.queues import QUEUES
from fairlane.web.api.schedules import SCHEDULES
from fairlane.web.api.sessions import SESSIONS
from fairlane.web.api.shares import SHARES
from fairlane.web.api.statistics import STATISTICS
from fairlane.web.api.tasks import TASKS
from fairlane.web.api.tenants import TENANTS
from fairlane.web.api.tokens import TOKENS
from fairlane.web.api.users import USERS
from fairlane.web.api.workers import WORKERS
from fairlane.web.declare import EndpointGroup

GROUPS: Final[Sequence[EndpointGroup]] = (
    JOBS,
    JOB_ENQUEUE,
    JOB_CHANGES,
    JOB_BULK,
    DEAD,
    DEAD_BULK,
    HISTORY,
    QUEUES,
    TENANTS,
    SHARES,
    TASKS,
    SCHEDULES,
    WORKERS,
    DUTIES,
    GATES,
    BREAKERS,
    BUDGETS,
    EVENTS,
    AUDIT,
    USERS,
    TOKENS,
    SESSIONS,
    STATISTICS,
    DEBUG,
    ABOUT,
)
"""In the order of the documentation."""
