"""The public names: exactly these, each documented, and importing them costs nothing."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import fairlane
from fairlane import _public
from tests.unmeasured import without_coverage

WORDS = "SYSTEM Duration Json State ErrorClass CancelReply EventData"
POLICIES = "Backoff RetryPolicy Rate Limits Queue Share Lane Gate Budget Breaker"
OUTCOMES = "Outcome Retry Snooze Fail Cancel Skip SoftTimeout"
APPLICATION = """
    Fairlane Tasks Task TaskDecorator EventDecorator Call Context chunks current_tenant current_job Outbox
    Relay
"""
JOBS = """
    Job Attempt Progress Jobs Page Waiting Counts FailureReport Trace TracedJob TaskFailures RetryReport
    TaskRetries
"""
STEERING = """
    Tenant Tenants QueueView Queues QueueStats PublishedTask PublishedTasks TaskVersion GateView Gates
    BudgetAccount BudgetView Budgets SpendView Worker
    BreakerView Breakers ForcedBreaker
    DutyView ReportedDuties
    Schedules ScheduleView ScheduleEdit SchedulePreview SlotView
    WorkerLane RateView Workers Held Overridden WorkerStatus LaneStatus SlotStatus
    TenantShare TenantShares QueueShare SharedQueue SlotHolder
"""
REVIEWING = """
    DeadLetters DeadLetterView DeadNote DeadGroup DeadStatistics BulkResult RefusedLetter
    History ExportResult ImportResult
    Audit AuditEntry AuditReport AuditProblem Events EventView
"""
ACCESS = "Users User Tokens Token NewToken Sessions Session Role"
ERRORS = """
    FairlaneError ConfigError InvalidJob Problem UnknownTask UnknownTenant TenantRequired PayloadTooLarge
    QueryError SensitivePayload Refused WaitingLimitReached QueueFull Closed DuplicateJob IdempotencyMismatch
    TenantMismatch InsideTenant OutsideTenant JobNotFound JobFailed JobCancelled ResultGone
    ClaimLost StartupFailed StoreError StoreUnavailable StoreBusy StoreGone EnqueueUnknown SchemaTooOld
    SchemaTooNew Unsupported EntryNotFound WorkerNotFound WorkerSilent WrongState QueueNotEmpty
    UserNotFound UserExists TokenNotFound SessionNotFound TooManyAttempts BreakerOpen
    InvalidSchedule ScheduleNotFound ScheduleExists
"""
PUBLIC = sorted(
    f"{WORDS} {POLICIES} {OUTCOMES} {APPLICATION} {JOBS} {STEERING} {REVIEWING} {ACCESS} {ERRORS}".split()
)

ABSENT = "Dead"
"""Planned, and not there: a name that only raises would be worse than none."""

METHODS = {
    "Fairlane": """
        aclose acting_as aenqueue_by_name aenqueue_many as_system breaker client close enqueue_by_name
        enqueue_many
        include join on_event on_shutdown on_startup resource schedule settings task tenant tenant_context
    """,
    "Tasks": "client join on_event schedule task",
    "Task": "aenqueue bind enqueue func name queue upcast using",
    "Context": "asucceed_in cancelled check job log metadata progress resource schedule slot spend "
    "succeed_in",
    "Outbox": "add add_many ddl statements",
    "Relay": "drain run session start stop",
    "Job": "acancel arefresh aresult arguments cancel is_finished logs refresh result schedule slot",
}


def test_exactly_these_names_are_public() -> None:
    """A name more is a promise more; a name less breaks somebody's import."""
    assert sorted(_public.__all__) == PUBLIC
    assert len(set(PUBLIC)) == len(PUBLIC)
    assert not set(ABSENT.split()) & set(dir(fairlane))


def test_every_public_name_exists() -> None:
    """`from fairlane import *` works."""
    assert [name for name in PUBLIC if not hasattr(fairlane, name)] == []


def test_every_public_name_is_on_the_reference_page() -> None:
    """What is promised can be looked up, and what is not there is not promised."""
    page = (Path(__file__).parent.parent / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", page))
    assert [name for name in PUBLIC if name not in words] == []
    assert not set(ABSENT.split()) & set(re.findall(r"`(\w+)`", page))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_exactly_these_members_are_public(name: str) -> None:
    """What the class says of itself; fields of dataclasses are in the type tests."""
    kind: type = getattr(fairlane, name)
    fields = set(typing.get_type_hints(kind)) | set(getattr(kind, "__slots__", ()))
    members = {one for one in dir(kind) if not one.startswith("_") and hasattr(kind, one)} - fields
    assert sorted(members) == sorted(METHODS[name].split())


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(getattr(fairlane, name))])
def test_every_public_class_and_method_is_explained(name: str) -> None:
    """A docstring of its own, not one that Python makes up."""
    kind: type = getattr(fairlane, name)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{name}(")
    for member, value in vars(kind).items():
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert value.__doc__, f"{name}.{member}"


@pytest.mark.parametrize("name", ["chunks", "current_job", "current_tenant"])
def test_every_public_function_is_explained(name: str) -> None:
    """As classes are."""
    assert getattr(fairlane, name).__doc__


IMPORT = """
import sys, threading
opened = []
def watch(event, args):
    if event == "open" and isinstance(args[0], str) and not args[0].endswith((".py", ".pyc", ".so")):
        opened.append(args[0])
    if event in {"socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "_thread.start_new_thread"}:
        opened.append(event)
import asyncio, decimal, enum, hashlib, inspect, logging, msgspec, random, typing, uuid, zoneinfo
sys.addaudithook(watch)
import fairlane
from fairlane import _public
app = fairlane.Fairlane("sqlite:///nowhere.db")
app.task(name="x")(lambda: None)
print(threading.active_count(), sorted(opened), asyncio._get_running_loop())
print(sorted(name for name in ("asyncpg", "redis", "apsw", "psycopg", "sqlite3") if name in sys.modules))
"""


def test_importing_starts_no_thread_opens_no_file_and_loads_no_driver() -> None:
    """Nor does making an application: the first call does."""
    run = subprocess.run(  # noqa: S603 (our own text)
        [sys.executable, "-W", "error", "-c", IMPORT],
        capture_output=True,
        text=True,
        check=True,
        env=without_coverage(),
    )
    assert run.stdout.splitlines() == ["1 [] None", "[]"]
    assert run.stderr == ""
