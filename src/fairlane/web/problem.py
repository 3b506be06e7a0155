"""Turn every error into one shape: `application/problem+json` with a stable code (RFC 9457).

A caller that is bound to a tenant gets for other tenants' things what it gets for things that do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from fairlane.model.access_errors import TooManyAttempts, UserExists
from fairlane.model.errors import (
    Closed,
    ConfigError,
    DuplicateJob,
    EnqueueUnknown,
    IdempotencyMismatch,
    InvalidJob,
    JobCancelled,
    JobFailed,
    JobNotFound,
    Problem,
    QueueFull,
    Refused,
    ResultGone,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    TenantMismatch,
    Unsupported,
    WaitingLimitReached,
    WrongState,
)
from fairlane.model.journal.errors import EntryNotFound
from fairlane.model.policy.errors import QueueNotEmpty
from fairlane.model.query.syntax import QueryError
from fairlane.model.schedule.errors import ScheduleExists, ScheduleNotFound
from fairlane.model.worker_errors import WorkerNotFound, WorkerSilent
from fairlane.web.reading import BadRequest

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = "retry-after"


class ProblemReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an error says: `code` is stable, for programs; `detail` and `hint` are for people.

    `problems` has every bad field; `field` and `hint` are those of the first. `position` is the character,
    counted from 0, at which a query cannot be understood.
    """

    title: str
    status: int
    code: str
    detail: str = ""
    field: str = ""
    hint: str = ""
    request_id: str = ""
    problems: tuple[Problem, ...] = ()
    position: int | None = None


class HttpProblem(Exception):  # noqa: N818 (it is named after what it becomes)
    """An answer that is no success."""

    def __init__(
        self, status: int, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.hint = hint
        self.headers = dict(headers or {})


class SignedOut(HttpProblem):
    """Nobody is known to make a request. Pages lead to `sign_in`, if there is such a place.

    `is_own`: it is the sign-in page of this application, whose cookie other sites' links do not bring along.
    """

    def __init__(self, sign_in: str | None, *, is_own: bool, challenge: str) -> None:
        super().__init__(
            401, "signed_out", "this needs a caller who is known", headers={"www-authenticate": challenge}
        )
        self.sign_in = sign_in
        self.is_own = is_own


TITLES: Final[Mapping[int, str]] = {
    400: "The request cannot be read",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "Not possible now",
    410: "No longer there",
    413: "Too large",
    415: "Not in a form that is understood",
    421: "Wrong host",
    422: "Something is wrong with the request",
    429: "Too many requests",
    500: "Something went wrong here",
    503: "Not available now",
    504: "Too slow",
}

NOT_FOUND: Final = "there is nothing here that you may see"

_BY_ERROR: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (JobNotFound, 404, "not_found"),
    (EntryNotFound, 404, "not_found"),
    (WorkerNotFound, 404, "not_found"),
    (ScheduleNotFound, 404, "not_found"),
    (ScheduleExists, 409, "schedule_exists"),
    (TenantMismatch, 404, "not_found"),
    (LookupError, 404, "not_found"),
    (WorkerSilent, 504, "worker_silent"),
    (TooManyAttempts, 429, "too_many_attempts"),
    (UserExists, 409, "user_exists"),
    (WrongState, 409, "wrong_state"),
    (DuplicateJob, 409, "duplicate"),
    (IdempotencyMismatch, 409, "idempotency_mismatch"),
    (Closed, 409, "closed"),
    (QueueFull, 429, "queue_full"),
    (WaitingLimitReached, 429, "waiting_limit"),
    (QueueNotEmpty, 409, "not_empty"),
    (Refused, 409, "refused"),
    (EnqueueUnknown, 503, "enqueue_unknown"),
    (ResultGone, 410, "result_gone"),
    (JobFailed, 409, "job_failed"),
    (JobCancelled, 409, "job_cancelled"),
    (Unsupported, 409, "unsupported"),
    (StoreBusy, 503, "store_busy"),
    (StoreUnavailable, 503, "store_unavailable"),
    (StoreError, 503, "store_unavailable"),
    (ConfigError, 422, "invalid"),
    (ValueError, 422, "invalid"),
)
"""The first that fits counts."""

_MISTAKES: Final = (KeyError, IndexError, UnicodeError)
"""What only a mistake in our own code raises."""

_LATER: Final = {"queue_full": "10", "waiting_limit": "10"}


def problem_of(error: Exception, request_id: str) -> tuple[ProblemReply, dict[str, str]]:
    """Return what an error says, and headers; 500 for an unexpected one."""
    if isinstance(error, HttpProblem):
        reply = _reply(error.status, error.code, str(error), hint=error.hint, request_id=request_id)
        return reply, error.headers
    if isinstance(error, BadRequest):
        return _listed(error.status, "invalid", error.problems, request_id), {}
    if isinstance(error, InvalidJob):
        codes = {problem.code for problem in error.problems}
        code = codes.pop() if len(codes) == 1 else "invalid"
        return _listed(422, code, tuple(error.problems), request_id), {}
    if isinstance(error, QueryError):
        return _reply(422, "query", str(error), request_id=request_id, position=error.position), {}
    for kind, status, code in _BY_ERROR:
        if isinstance(error, kind) and not isinstance(error, _MISTAKES):
            return _known(error, status, code, request_id)
    return _reply(
        500, "internal", "the server's log has the cause under this request id", request_id=request_id
    ), {}


def _known(error: Exception, status: int, code: str, request_id: str) -> tuple[ProblemReply, dict[str, str]]:
    if status == 404:  # noqa: PLR2004 (the status itself)
        return _reply(404, code, NOT_FOUND, request_id=request_id), {}
    headers = {RETRY_AFTER: _LATER.get(code, "1")} if status in {429, 503} else {}
    if isinstance(error, TooManyAttempts):
        headers[RETRY_AFTER] = str(error.retry_after)
    field, separator, message = str(error).partition(": ")
    has_field = bool(separator) and field.replace("_", "").replace(".", "").isalnum()
    if status == 422 and has_field:  # noqa: PLR2004 (as above)
        message, _, hint = message.partition("; ")
        return _listed(422, code, (Problem(0, field, message, hint, code),), request_id), headers
    return _reply(status, code, str(error), request_id=request_id), headers


def _listed(status: int, code: str, problems: tuple[Problem, ...], request_id: str) -> ProblemReply:
    first = problems[0]
    return _reply(
        status,
        code,
        "; ".join(f"{problem.field}: {problem.message}" for problem in problems),
        field=first.field,
        hint=first.hint,
        request_id=request_id,
        problems=problems,
    )


def _reply(status: int, code: str, detail: str, **rest: Any) -> ProblemReply:
    title = TITLES.get(status, "Not possible")
    return ProblemReply(title=title, status=status, code=code, detail=detail[:2_000], **rest)


def problem_response(reply: ProblemReply, headers: Mapping[str, str]) -> Response:
    """Return the response of an error."""
    body = msgspec.json.encode(reply)
    return Response(body, status_code=reply.status, headers=dict(headers), media_type=MEDIA_TYPE)
