"""The public names of the package and their modules. Nothing else is part of the API."""

from __future__ import annotations

from fairlane.app.admin.counts import Counts
from fairlane.app.admin.explain import Waiting
from fairlane.app.admin.gates import Gates, GateView
from fairlane.app.admin.jobs import Jobs, Page
from fairlane.app.admin.published_tasks import PublishedTask, PublishedTasks
from fairlane.app.admin.queue_stats import QueueStats
from fairlane.app.admin.queues import Queues
from fairlane.app.admin.tenants import Tenants
from fairlane.app.admin.views import Held, Overridden, QueueView, Tenant
from fairlane.app.admin.workers import Worker, WorkerLane, Workers
from fairlane.app.ambient import current_job, current_tenant
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.chunks import chunks
from fairlane.app.fairlane import Fairlane
from fairlane.app.job import Attempt, Job, Json
from fairlane.app.task.context import Context, SoftTimeout
from fairlane.app.task.tasks import Task, TaskDecorator, Tasks
from fairlane.model.errors import (
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
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.model.policy.declared import Gate, Lane, Queue, Share
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.retry.backoff import Backoff, RetryPolicy
from fairlane.model.retry.outcome import Cancel, Fail, Outcome, Retry, Snooze
from fairlane.model.scope import SYSTEM
from fairlane.outbox.outbox import Outbox
from fairlane.outbox.relay import Relay

__all__ = [
    "SYSTEM",
    "Attempt",
    "Backoff",
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
