"""The public names of the package and their modules. Nothing else is part of the API."""

from __future__ import annotations

from fairlane.app.access.sessions import Sessions
from fairlane.app.access.tokens import Tokens
from fairlane.app.access.users import Users
from fairlane.app.access.views import NewToken, Session, Token, User
from fairlane.app.admin.breakers import Breakers, BreakerView, ForcedBreaker
from fairlane.app.admin.budgets import BudgetAccount, Budgets, BudgetView, SpendView
from fairlane.app.admin.counts import Counts
from fairlane.app.admin.duties import DutyView, ReportedDuties
from fairlane.app.admin.explain import Waiting
from fairlane.app.admin.failures import FailureReport, TaskFailures
from fairlane.app.admin.gates import Gates, GateView
from fairlane.app.admin.job_trace import Trace, TracedJob
from fairlane.app.admin.jobs import Jobs, Page
from fairlane.app.admin.published_tasks import PublishedTask, PublishedTasks, TaskVersion
from fairlane.app.admin.queue_stats import QueueStats
from fairlane.app.admin.queues import Queues
from fairlane.app.admin.rates import RateView
from fairlane.app.admin.retries import RetryReport, TaskRetries
from fairlane.app.admin.shares.views import QueueShare, SharedQueue, SlotHolder, TenantShare, TenantShares
from fairlane.app.admin.tenants import Tenants
from fairlane.app.admin.views import Held, Overridden, QueueView, Tenant
from fairlane.app.admin.worker_status import LaneStatus, SlotStatus, WorkerStatus
from fairlane.app.admin.workers import Worker, WorkerLane, Workers
from fairlane.app.ambient import current_job, current_tenant
from fairlane.app.dead.dead_letters import DeadLetters
from fairlane.app.dead.views import (
    BulkResult,
    DeadGroup,
    DeadLetterView,
    DeadNote,
    DeadStatistics,
    RefusedLetter,
)
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.chunks import chunks
from fairlane.app.fairlane import Fairlane
from fairlane.app.history.exporting import ExportResult
from fairlane.app.history.history import History
from fairlane.app.history.importing import ImportResult
from fairlane.app.job import Attempt, Job, Json
from fairlane.app.journals.audit import Audit
from fairlane.app.journals.events import Events
from fairlane.app.journals.views import AuditEntry, AuditProblem, AuditReport, EventView
from fairlane.app.schedules.schedules import Schedules
from fairlane.app.schedules.views import ScheduleEdit, SchedulePreview, ScheduleView, SlotView
from fairlane.app.task.context import Context, SoftTimeout
from fairlane.app.task.subscriber import EventData
from fairlane.app.task.tasks import EventDecorator, Task, TaskDecorator, Tasks
from fairlane.model.access import Role
from fairlane.model.access_errors import (
    SessionNotFound,
    TokenNotFound,
    TooManyAttempts,
    UserExists,
    UserNotFound,
)
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
    WrongState,
)
from fairlane.model.failure import ErrorClass
from fairlane.model.guards.errors import BreakerOpen
from fairlane.model.instants import Duration
from fairlane.model.job import Progress
from fairlane.model.journal.errors import EntryNotFound
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.model.policy.declared import Breaker, Budget, Gate, Lane, Queue, Share
from fairlane.model.policy.errors import QueueNotEmpty
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.query.syntax import QueryError
from fairlane.model.retry.backoff import Backoff, RetryPolicy
from fairlane.model.retry.outcome import Cancel, Fail, Outcome, Retry, Skip, Snooze
from fairlane.model.schedule.errors import InvalidSchedule, ScheduleExists, ScheduleNotFound
from fairlane.model.scope import SYSTEM
from fairlane.model.worker_errors import StartupFailed, WorkerNotFound, WorkerSilent
from fairlane.outbox.outbox import Outbox
from fairlane.outbox.relay import Relay

__all__ = [
    "SYSTEM",
    "Attempt",
    "Audit",
    "AuditEntry",
    "AuditProblem",
    "AuditReport",
    "Backoff",
    "Breaker",
    "BreakerOpen",
    "BreakerView",
    "Breakers",
    "Budget",
    "BudgetAccount",
    "BudgetView",
    "Budgets",
    "BulkResult",
    "Call",
    "Cancel",
    "CancelReply",
    "ClaimLost",
    "Closed",
    "ConfigError",
    "Context",
    "Counts",
    "DeadGroup",
    "DeadLetterView",
    "DeadLetters",
    "DeadNote",
    "DeadStatistics",
    "DuplicateJob",
    "Duration",
    "DutyView",
    "EnqueueUnknown",
    "EntryNotFound",
    "ErrorClass",
    "EventData",
    "EventDecorator",
    "EventView",
    "Events",
    "ExportResult",
    "Fail",
    "FailureReport",
    "Fairlane",
    "FairlaneError",
    "ForcedBreaker",
    "Gate",
    "GateView",
    "Gates",
    "Held",
    "History",
    "IdempotencyMismatch",
    "ImportResult",
    "InsideTenant",
    "InvalidJob",
    "InvalidSchedule",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "Jobs",
    "Json",
    "Lane",
    "LaneStatus",
    "Limits",
    "NewToken",
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
    "QueryError",
    "Queue",
    "QueueFull",
    "QueueNotEmpty",
    "QueueShare",
    "QueueStats",
    "QueueView",
    "Queues",
    "Rate",
    "RateView",
    "Refused",
    "RefusedLetter",
    "Relay",
    "ReportedDuties",
    "ResultGone",
    "Retry",
    "RetryPolicy",
    "RetryReport",
    "Role",
    "ScheduleEdit",
    "ScheduleExists",
    "ScheduleNotFound",
    "SchedulePreview",
    "ScheduleView",
    "Schedules",
    "SchemaTooNew",
    "SchemaTooOld",
    "SensitivePayload",
    "Session",
    "SessionNotFound",
    "Sessions",
    "Share",
    "SharedQueue",
    "Skip",
    "SlotHolder",
    "SlotStatus",
    "SlotView",
    "Snooze",
    "SoftTimeout",
    "SpendView",
    "StartupFailed",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreGone",
    "StoreUnavailable",
    "Task",
    "TaskDecorator",
    "TaskFailures",
    "TaskRetries",
    "TaskVersion",
    "Tasks",
    "Tenant",
    "TenantMismatch",
    "TenantRequired",
    "TenantShare",
    "TenantShares",
    "Tenants",
    "Token",
    "TokenNotFound",
    "Tokens",
    "TooManyAttempts",
    "Trace",
    "TracedJob",
    "UnknownTask",
    "UnknownTenant",
    "Unsupported",
    "User",
    "UserExists",
    "UserNotFound",
    "Users",
    "Waiting",
    "WaitingLimitReached",
    "Worker",
    "WorkerLane",
    "WorkerNotFound",
    "WorkerSilent",
    "WorkerStatus",
    "Workers",
    "WrongState",
    "chunks",
    "current_job",
    "current_tenant",
]
