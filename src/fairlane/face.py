"""The public names, and where each of them is. Nothing else is promised."""

from __future__ import annotations

from fairlane.app.ambient import current_job, current_tenant
from fairlane.app.call import Call
from fairlane.app.chunks import chunks
from fairlane.app.context import Context, SoftTimeout
from fairlane.app.counts import Counts
from fairlane.app.fairlane import Fairlane
from fairlane.app.gates import Gates, GateView
from fairlane.app.job import Attempt, Job, Json
from fairlane.app.jobs import Jobs, Page
from fairlane.app.published import PublishedTask, PublishedTasks
from fairlane.app.queues import Queues
from fairlane.app.stats import QueueStats
from fairlane.app.tasks import Task, TaskDecorator, Tasks
from fairlane.app.tenants import Tenants
from fairlane.app.views import Held, Overridden, QueueView, Tenant
from fairlane.app.waiting import Waiting
from fairlane.app.workers import Worker, WorkerLane, Workers
from fairlane.model.errors import (
    BreakerOpen,
    ClaimLost,
    Closed,
    ConfigError,
    DuplicateJob,
    EnqueueUnknown,
    FairlaneError,
    IdempotencyMismatch,
    InsideTenant,
    InvalidJob,
    JobCancelled,
    JobFailed,
    JobNotFound,
    OutsideTenant,
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
    StoreGone,
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
from fairlane.model.job import Progress
from fairlane.model.lifecycle import CancelReply, State
from fairlane.model.limits import Limits, Rate
from fairlane.model.outcome import Cancel, Fail, Outcome, Retry, Snooze
from fairlane.model.policy import Breaker, Budget, Gate, Lane, Queue, Share
from fairlane.model.retry import Backoff, RetryPolicy
from fairlane.model.scope import SYSTEM
from fairlane.outbox.outbox import Outbox
from fairlane.outbox.relay import Relay

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
    "ClaimLost",
    "Closed",
    "ConfigError",
    "Context",
    "Counts",
    "DuplicateJob",
    "Duration",
    "EnqueueUnknown",
    "ErrorClass",
    "Fail",
    "Fairlane",
    "FairlaneError",
    "Gate",
    "GateView",
    "Gates",
    "Held",
    "IdempotencyMismatch",
    "InsideTenant",
    "InvalidJob",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "Jobs",
    "Json",
    "Lane",
    "Limits",
    "Outbox",
    "Outcome",
    "OutsideTenant",
    "Overridden",
    "Page",
    "PayloadTooLarge",
    "Problem",
    "Progress",
    "PublishedTask",
    "PublishedTasks",
    "Queue",
    "QueueFull",
    "QueueStats",
    "QueueView",
    "Queues",
    "Rate",
    "Refused",
    "Relay",
    "ResultGone",
    "Retry",
    "RetryPolicy",
    "SchemaTooNew",
    "SchemaTooOld",
    "SensitivePayload",
    "Share",
    "Snooze",
    "SoftTimeout",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreGone",
    "StoreUnavailable",
    "Task",
    "TaskDecorator",
    "Tasks",
    "Tenant",
    "TenantMismatch",
    "TenantRequired",
    "Tenants",
    "UnknownTask",
    "UnknownTenant",
    "Unsupported",
    "Waiting",
    "WaitingLimitReached",
    "Worker",
    "WorkerLane",
    "Workers",
    "chunks",
    "current_job",
    "current_tenant",
]
