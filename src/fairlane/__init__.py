"""Background jobs for multi-tenant Python applications: fair between tenants, durable, observable.

Importing this starts nothing and opens nothing. Each name is loaded when it is first used, so that the
command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairlane.app.ambient import current_job, current_tenant
    from fairlane.app.call import Call
    from fairlane.app.context import Context
    from fairlane.app.fairlane import Fairlane
    from fairlane.app.job import Attempt, Job, Json
    from fairlane.app.jobs import Jobs, Page
    from fairlane.app.tasks import Task, TaskDecorator, Tasks
    from fairlane.app.waiting import Waiting
    from fairlane.model.errors import (
        BreakerOpen,
        Closed,
        ConfigError,
        DuplicateJob,
        EnqueueUnknown,
        FairlaneError,
        IdempotencyMismatch,
        InvalidJob,
        JobCancelled,
        JobFailed,
        JobNotFound,
        PayloadTooLarge,
        Problem,
        QueueFull,
        Refused,
        ResultGone,
        SchemaTooNew,
        SchemaTooOld,
        SensitivePayload,
        StoreBusy,
        StoreError,
        StoreUnavailable,
        TenantMismatch,
        TenantRequired,
        UnknownTask,
        UnknownTenant,
        Unsupported,
        WaitingLimitReached,
    )
    from fairlane.model.failure import ErrorClass
    from fairlane.model.instants import Duration
    from fairlane.model.lifecycle import CancelReply, State
    from fairlane.model.limits import Limits, Rate
    from fairlane.model.outcome import Cancel, Fail, Outcome, Retry, Snooze
    from fairlane.model.policy import Breaker, Budget, Gate, Lane, Queue, Share
    from fairlane.model.retry import Backoff, RetryPolicy
    from fairlane.model.scope import SYSTEM

__all__ = [
    "SYSTEM",
    "Attempt",
    "Backoff",
    "Breaker",
    "BreakerOpen",
    "Budget",
    "Call",
    "Cancel",
    "CancelReply",
    "Closed",
    "ConfigError",
    "Context",
    "DuplicateJob",
    "Duration",
    "EnqueueUnknown",
    "ErrorClass",
    "Fail",
    "Fairlane",
    "FairlaneError",
    "Gate",
    "IdempotencyMismatch",
    "InvalidJob",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "Jobs",
    "Json",
    "Lane",
    "Limits",
    "Outcome",
    "Page",
    "PayloadTooLarge",
    "Problem",
    "Queue",
    "QueueFull",
    "Rate",
    "Refused",
    "ResultGone",
    "Retry",
    "RetryPolicy",
    "SchemaTooNew",
    "SchemaTooOld",
    "SensitivePayload",
    "Share",
    "Snooze",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskDecorator",
    "Tasks",
    "TenantMismatch",
    "TenantRequired",
    "UnknownTask",
    "UnknownTenant",
    "Unsupported",
    "Waiting",
    "WaitingLimitReached",
    "current_job",
    "current_tenant",
]

_HOMES: Final = {
    "fairlane.app.ambient": (
        "current_job",
        "current_tenant",
    ),
    "fairlane.app.call": ("Call",),
    "fairlane.app.context": ("Context",),
    "fairlane.app.fairlane": ("Fairlane",),
    "fairlane.app.job": (
        "Attempt",
        "Job",
        "Json",
    ),
    "fairlane.app.jobs": (
        "Jobs",
        "Page",
    ),
    "fairlane.app.tasks": (
        "Task",
        "TaskDecorator",
        "Tasks",
    ),
    "fairlane.app.waiting": ("Waiting",),
    "fairlane.model.errors": (
        "BreakerOpen",
        "Closed",
        "ConfigError",
        "DuplicateJob",
        "EnqueueUnknown",
        "FairlaneError",
        "IdempotencyMismatch",
        "InvalidJob",
        "JobCancelled",
        "JobFailed",
        "JobNotFound",
        "PayloadTooLarge",
        "Problem",
        "QueueFull",
        "Refused",
        "ResultGone",
        "SchemaTooNew",
        "SchemaTooOld",
        "SensitivePayload",
        "StoreBusy",
        "StoreError",
        "StoreUnavailable",
        "TenantMismatch",
        "TenantRequired",
        "UnknownTask",
        "UnknownTenant",
        "Unsupported",
        "WaitingLimitReached",
    ),
    "fairlane.model.failure": ("ErrorClass",),
    "fairlane.model.instants": ("Duration",),
    "fairlane.model.lifecycle": (
        "CancelReply",
        "State",
    ),
    "fairlane.model.limits": (
        "Limits",
        "Rate",
    ),
    "fairlane.model.outcome": (
        "Cancel",
        "Fail",
        "Outcome",
        "Retry",
        "Snooze",
    ),
    "fairlane.model.policy": (
        "Breaker",
        "Budget",
        "Gate",
        "Lane",
        "Queue",
        "Share",
    ),
    "fairlane.model.retry": (
        "Backoff",
        "RetryPolicy",
    ),
    "fairlane.model.scope": ("SYSTEM",),
}
"""Where each name is; a test compares it with the imports above, which only type checkers read."""

_PLACES: Final = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # or type checkers would believe that any name is here

    def __getattr__(name: str) -> Any:
        """Load a public name."""
        if name not in _PLACES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return value

    def __dir__() -> list[str]:
        """Name what is there, loaded or not."""
        return sorted({*globals(), *__all__})
