"""Check the new values of a waiting job as an enqueue would, and make the request that changes it (S64).

Sends nothing. What becomes of new arguments is in `merged_arguments`.
"""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.client import Client
from fairlane.app.enqueue import checks
from fairlane.app.enqueue.call import NO_OPTIONS, Options
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.enqueue.job_fields import timing_of
from fairlane.app.enqueue.merged_arguments import MergedPayload, merge_arguments
from fairlane.model.errors import InvalidJob, Problem, invalid_job
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.scheduling.priority import at_edge
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import EditRequest


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """New values as the caller gave them, unchecked; `options` has those that an enqueue has as well."""

    options: Options
    arguments: object = UNSET
    removes_expiry: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return self.options == NO_OPTIONS and self.arguments is UNSET and not self.removes_expiry

    @property
    def is_relative(self) -> bool:
        """Whether a time counts from now, so that the store's clock must be read first."""
        return self.options.delay is not UNSET or self.options.expires_in is not UNSET


async def edit_request(
    client: Client, scope: Scope, record: JobRecord, edit: Edit, now: Instant | None
) -> EditRequest:
    """Return the request; `InvalidJob` lists every bad field. `now` is the store's, for relative times."""
    problems, options = ProblemList(0), edit.options
    priority: int | UnsetType = UNSET
    if options.priority is not UNSET:
        lower_first = client.settings.is_lower_first
        priority = at_edge(checks.priority(problems, "priority", options.priority), lower_first=lower_first)
    timing = timing_of(problems, options)
    run_at = _absolute(timing.run_at, timing.delay if options.delay is not UNSET else None, now)
    expires_at: Instant | UnsetType | None = _absolute(timing.expires_at, timing.expires_in, now)
    if edit.removes_expiry:
        expires_at = None
        if options.expires_in is not UNSET:
            problems.add("expires_at", "is given together with expires_in", "give one of the two", "conflict")
    tags = UNSET if options.tags is UNSET else checks.tags(problems, options.tags)
    given = MergedPayload()
    if edit.arguments is not UNSET:
        given = await merge_arguments(client, problems, record, edit.arguments, tags)
    request = EditRequest(
        scope=scope,
        id=record.id,
        priority=priority,
        run_at=run_at,
        expires_at=expires_at,
        tags=tags,
        payload=given.payload,
        checksum=given.checksum,
        version=given.version,
    )
    if not problems.found:
        _check_order(problems, record, request)
    if problems.found:
        raise _not_edited(record.id, problems.found)
    return request


def _absolute(at: Instant | None, after: Micros | None, now: Instant | None) -> Instant | UnsetType:
    if at is not None:
        return at
    return UNSET if after is None or now is None else now + after


def _check_order(problems: ProblemList, record: JobRecord, request: EditRequest) -> None:
    """Refuse times with which the job could never start; those that it has already count as well."""
    if request.run_at is UNSET and request.expires_at is UNSET:
        return
    run_at = record.run_at if isinstance(request.run_at, UnsetType) else request.run_at
    expires_at = record.expires_at if isinstance(request.expires_at, UnsetType) else request.expires_at
    if record.state is State.DELAYED and expires_at is not None and run_at >= expires_at:
        field = "run_at" if request.expires_at is UNSET else "expires_at"
        problems.add(field, "would let the job expire before it starts", "give it more time", "conflict")


def _not_edited(id: UUID, problems: list[Problem]) -> InvalidJob:
    lines = "\n".join(f"  {problem.text}" for problem in problems)
    text = f"job {id} was not changed, {len(problems)} problem(s):\n{lines}"
    return type(invalid_job(problems))(problems, text)
