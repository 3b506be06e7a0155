"""Errors say what was wrong, where, and what to do; programs read attributes, not messages."""

from __future__ import annotations

import inspect
import re
from copy import copy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from fairlane.model import access_errors, errors, worker_errors
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
    invalid_job,
)
from fairlane.model.policy import errors as policy_errors
from fairlane.model.policy.errors import QueueNotEmpty
from fairlane.model.worker_errors import StartupFailed, WorkerNotFound, WorkerSilent

ID = UUID(int=7)
JOB = SimpleNamespace(id=ID)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

PARENTS: dict[type[FairlaneError], type[BaseException]] = {
    ConfigError: FairlaneError,
    InvalidJob: FairlaneError,
    UnknownTask: InvalidJob,
    UnknownTenant: InvalidJob,
    TenantRequired: InvalidJob,
    PayloadTooLarge: InvalidJob,
    SensitivePayload: InvalidJob,
    Refused: FairlaneError,
    WaitingLimitReached: Refused,
    QueueFull: Refused,
    Closed: Refused,
    DuplicateJob: Refused,
    IdempotencyMismatch: Refused,
    TenantMismatch: Refused,
    InsideTenant: TenantMismatch,
    OutsideTenant: Refused,
    UserExists: Refused,
    WrongState: Refused,
    QueueNotEmpty: Refused,
    JobNotFound: FairlaneError,
    JobFailed: FairlaneError,
    JobCancelled: FairlaneError,
    ResultGone: FairlaneError,
    ClaimLost: FairlaneError,
    StartupFailed: FairlaneError,
    WorkerNotFound: FairlaneError,
    WorkerSilent: FairlaneError,
    UserNotFound: FairlaneError,
    TokenNotFound: FairlaneError,
    SessionNotFound: FairlaneError,
    TooManyAttempts: FairlaneError,
    StoreError: FairlaneError,
    StoreUnavailable: StoreError,
    StoreBusy: StoreError,
    StoreGone: StoreError,
    EnqueueUnknown: StoreError,
    SchemaTooOld: StoreError,
    SchemaTooNew: StoreError,
    Unsupported: StoreError,
}


@pytest.mark.parametrize(("kind", "parent"), PARENTS.items())
def test_every_error_is_caught_by_its_parent(kind: type, parent: type) -> None:
    """`except Refused` and `except StoreError` mean whole families."""
    assert issubclass(kind, parent)
    assert issubclass(kind, FairlaneError)


def drawn() -> dict[str, str]:
    """Read the drawing at the top of the module: each name with the name it hangs on."""
    above: dict[int, str] = {}
    found: dict[str, str] = {}
    for line in str(errors.__doc__).splitlines()[2:]:
        branch, name = re.match(r"([│├└─ ]*)(\w+)", line).groups()  # type: ignore[union-attr]
        depth = len(branch) // 4
        above[depth] = name
        found[name] = above.get(depth - 1, "")
    return found


def test_the_drawing_in_the_module_is_the_hierarchy() -> None:
    """Every public error hangs where it belongs, and nothing else is drawn."""
    public = {
        name
        for module in (errors, access_errors, policy_errors, worker_errors)
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, FairlaneError) and not name.startswith("_")
    }
    assert public == {kind.__name__ for kind in PARENTS} | {"FairlaneError"}
    parents = {kind.__name__: parent.__name__ for kind, parent in PARENTS.items()}
    assert drawn() == {"FairlaneError": "", **parents}


def test_three_errors_are_also_the_kind_that_python_users_expect() -> None:
    """A wrong option or a badly formed job is a ValueError, an unknown id a LookupError."""
    assert issubclass(ConfigError, ValueError)
    assert issubclass(InvalidJob, ValueError)
    assert issubclass(JobNotFound, LookupError)


@pytest.mark.parametrize(
    ("error", "message", "attributes"),
    [
        (
            WaitingLimitReached("acme", "bulk", 500, 500),
            "tenant acme has 500 waiting jobs in queue bulk, the limit is 500",
            {"tenant": "acme", "queue": "bulk", "waiting": 500, "limit": 500},
        ),
        (
            QueueFull("bulk", 9, 8),
            "queue bulk has 9 waiting jobs, its max_waiting is 8",
            {"queue": "bulk", "waiting": 9, "limit": 8},
        ),
        (
            Closed("queue bulk", "moving house"),
            "queue bulk is closed for new jobs: moving house",
            {"subject": "queue bulk", "reason": "moving house"},
        ),
        (DuplicateJob("k", ID), f"idempotency key 'k' belongs to job {ID}", {"existing": ID}),
        (
            IdempotencyMismatch("k", ID),
            f"idempotency key 'k' belongs to job {ID} with another task or arguments",
            {"existing": ID},
        ),
        (
            TenantMismatch("globex", "acme"),
            (
                "tenant globex was named inside tenant acme; code inside a tenant acts for that one alone, "
                "unless it says why with app.as_system(reason=...)"
            ),
            {"tenant": "globex", "scope": "acme"},
        ),
        (
            InsideTenant("queue bulk belongs to all tenants", "acme"),
            (
                "queue bulk belongs to all tenants, and this code acts for tenant acme; do it outside of a "
                "tenant, in a task declared system=True, or say why with app.as_system(reason=...)"
            ),
            {"tenant": "acme", "scope": "acme"},
        ),
        (
            WrongState(ID, "running", "running jobs cannot be edited", "cancel it first"),
            f"job {ID} is running: running jobs cannot be edited; cancel it first",
            {"id": ID, "state": "running"},
        ),
        (JobNotFound(ID), f"no job {ID}", {"id": ID}),
        (JobNotFound("nonsense"), "no job nonsense", {"id": "nonsense"}),
        (JobFailed(JOB, "ValueError: boom"), f"job {ID} is dead: ValueError: boom", {"job": JOB}),
        (JobFailed(JOB), f"job {ID} is dead", {"job": JOB}),
        (JobCancelled(JOB, "asked"), f"job {ID} was cancelled: asked", {"job": JOB}),
        (ResultGone(JOB), f"job {ID} succeeded, but its result is no longer kept", {"job": JOB}),
        (
            ResultGone(JOB, "too large"),
            f"job {ID} succeeded, but its result was dropped: too large",
            {"job": JOB},
        ),
        (
            ClaimLost(ID, 2),
            (
                f"attempt 2 no longer holds job {ID}: another has it, or it is settled; "
                "roll the transaction back"
            ),
            {"id": ID},
        ),
        (ConfigError("is wrong"), "is wrong", {"key": "", "source": "", "allowed": ""}),
        (
            ConfigError("is not a number", key="slots", source="fairlane.toml", allowed="1 or more"),
            "slots: is not a number (from fairlane.toml) Allowed: 1 or more.",
            {"key": "slots", "source": "fairlane.toml", "allowed": "1 or more"},
        ),
        (
            ConfigError("is not a number", source="FAIRLANE_SLOTS"),
            "is not a number (from FAIRLANE_SLOTS)",
            {"key": "", "source": "FAIRLANE_SLOTS"},
        ),
        (UserNotFound("ann"), "no user 'ann'; `fairlane users` lists them", {"name": "ann"}),
        (
            UserExists("ann"),
            "there is a user 'ann' already; `fairlane users set` changes it",
            {"name": "ann"},
        ),
        (TokenNotFound("1"), "no token '1'; `fairlane tokens` lists them", {"id": "1"}),
        (SessionNotFound("1"), "no session '1': it has ended, or it never was", {"id": "1"}),
        (
            TooManyAttempts(7),
            "too many attempts to sign in have failed; try again in 7 s",
            {"retry_after": 7},
        ),
        (
            QueueNotEmpty("mail", 3),
            "3 job(s) wait or run in queue mail; close it, and remove it when they have ended",
            {"queue": "mail", "jobs": 3},
        ),
        (
            OutsideTenant(),
            (
                "this code runs in a worker, but inside no tenant; run it in the handler's own context "
                "(contextvars.copy_context().run), or say why it may act for all with "
                "app.as_system(reason=...)"
            ),
            {},
        ),
    ],
)
def test_an_error_says_its_facts_and_carries_them(
    error: FairlaneError, message: str, attributes: dict[str, Any]
) -> None:
    """People read the message, programs the attributes."""
    assert str(error) == message
    assert {name: getattr(error, name) for name in attributes} == attributes


def test_a_bad_batch_lists_every_problem_on_a_line_of_its_own() -> None:
    """One round is enough to repair a batch."""
    problems = [
        Problem(0, "queue", "'Bulk' is not a legal name", "use lower case", "name"),
        Problem(7, "payload", "is too large", "send a reference", "too_large"),
    ]
    error = InvalidJob(iter(problems), is_batch=True)
    assert error.problems == tuple(problems)
    assert str(error).splitlines() == [
        "nothing was enqueued, 2 problem(s):",
        "  [0] queue: 'Bulk' is not a legal name; use lower case",
        "  [7] payload: is too large; send a reference",
    ]


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (["unknown_task"], UnknownTask),
        (["unknown_tenant"], UnknownTenant),
        (["tenant_required"], TenantRequired),
        (["too_large"], PayloadTooLarge),
        (["sensitive"], SensitivePayload),
        (["too_large", "too_large"], PayloadTooLarge),
        (["too_large", "sensitive"], InvalidJob),
        (["too_large", "invalid"], InvalidJob),
        (["invalid"], InvalidJob),
        (["name", "name"], InvalidJob),
        ([], InvalidJob),
    ],
)
def test_the_narrowest_class_speaks_only_if_all_problems_are_of_its_kind(
    codes: list[str], kind: type[InvalidJob]
) -> None:
    """`except PayloadTooLarge` must not hide another problem of the batch."""
    problems = [Problem(index, "field", "is wrong", "repair it", code) for index, code in enumerate(codes)]
    error = invalid_job(problems)
    assert type(error) is kind
    assert len(error.problems) == len(codes)


@pytest.mark.parametrize(
    ("kind", "is_safe"),
    [
        (StoreError, False),
        (StoreUnavailable, True),
        (StoreBusy, True),
        (StoreGone, False),
        (EnqueueUnknown, False),
        (SchemaTooOld, False),
        (SchemaTooNew, False),
        (Unsupported, False),
    ],
)
def test_a_store_error_says_whether_the_call_may_be_repeated(kind: type[StoreError], is_safe: bool) -> None:
    """The class has an answer; one case may differ without changing it for others."""
    assert kind("gone").retry_safe is is_safe
    assert kind("gone", retry_safe=not is_safe).retry_safe is not is_safe
    assert kind("gone").retry_safe is is_safe
    assert str(kind("gone")) == "gone"


def test_what_is_wrong_with_one_job_is_shown_without_a_number() -> None:
    """It is no item of a batch."""
    error = invalid_job([Problem(0, "queue", "'Bulk' is not a legal name", "use lower case", "name")])
    assert str(error).splitlines()[1:] == ["  queue: 'Bulk' is not a legal name; use lower case"]


class Sent:
    """What an enqueue has sent."""

    def repeat(self) -> str:
        """Say that it was sent again."""
        return "again"

    async def arepeat(self) -> str:
        """Say that it was sent again."""
        return "again, awaited"


async def test_an_unknown_enqueue_repeats_what_was_sent() -> None:
    """And an error that has nothing to send says so, as every copy of one does."""
    ids = (UUID(int=1),)
    error = EnqueueUnknown("lost", retry_safe=True, ids=ids, sent=Sent())
    assert (error.repeat(), await error.arepeat(), error.ids) == ("again", "again, awaited", ids)
    bare = copy(error)  # as pickling it does
    assert (str(bare), bare.ids, bare.retry_safe) == ("lost", ids, True)
    for nothing in (bare, EnqueueUnknown("lost")):
        with pytest.raises(RuntimeError, match="nothing to repeat"):
            nothing.repeat()
        with pytest.raises(RuntimeError, match="nothing to repeat"):
            await nothing.arepeat()
