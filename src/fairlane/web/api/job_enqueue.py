"""Jobs, enqueued by the name of their task: one, or many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import text_of
from fairlane.app.ambient import scope_for
from fairlane.app.enqueue.by_name import FoundTask, find_by_name
from fairlane.app.enqueue.call import NO_OPTIONS, Call
from fairlane.model.access import Role
from fairlane.model.errors import InvalidJob, Problem, invalid_job
from fairlane.model.job import OnDuplicate
from fairlane.store.contract.jobs import MAX_BATCH_SIZE
from fairlane.web.api.bodies import Moment
from fairlane.web.api.job_replies import EnqueuedReply, enqueued_replies
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup
from fairlane.web.reading import bad_field

JOB_ENQUEUE: Final = EndpointGroup("jobs", "New jobs, by the name of their task.")

KEY_HEADER: Final = "idempotency-key"


class NewJobBody(Body, frozen=True, kw_only=True):
    """A job: its task, the arguments as JSON values by name, and options. Durations are in seconds.

    A caller of one tenant need not name it. `created_by` is who asks unless given. A `timeout` of null is
    none.
    """

    task: str
    arguments: Mapping[str, Any] = {}
    tenant: str | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: Moment | None = None
    delay: float | None = None
    expires_at: Moment | None = None
    expires_in: float | None = None
    idempotency_key: str | None = None
    on_duplicate: OnDuplicate | None = None
    dedup_key: str | None = None
    correlation_id: str | None = None
    created_by: str | None = None
    parent: UUID | None = None
    max_attempts: int | None = None
    timeout: float | UnsetType | None = UNSET
    tags: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None


class EnqueueJob(NewJobBody, frozen=True, kw_only=True):
    """A job, and why it is enqueued."""

    note: str = ""


class EnqueueJobs(Change, frozen=True, kw_only=True):
    """Jobs, of which all are stored or none is."""

    jobs: Annotated[Sequence[NewJobBody], Meta(min_length=1, max_length=MAX_BATCH_SIZE)]


@JOB_ENQUEUE.post("/jobs", "jobs.enqueue", least=Role.OPERATOR, status=201)
async def enqueue(call: WebCall, body: EnqueueJob) -> EnqueuedReply:
    """Enqueue a job of a task that is declared or that workers have published.

    Arguments are checked against the task's schema. Of requests with the same header `Idempotency-Key`, or
    the same `idempotency_key`, and the same tenant, the first makes the job, and all get it: `created` says
    who made it. The same key with another task or other arguments is refused.
    """
    given = _with_key(body, call.request.headers.get(KEY_HEADER))
    (made,) = await _enqueue(call, [given], note=body.note, is_batch=False)
    return made


@JOB_ENQUEUE.post("/jobs/enqueue_many", "jobs.enqueue_many", least=Role.OPERATOR, status=201)
async def enqueue_many(call: WebCall, body: EnqueueJobs) -> Sequence[EnqueuedReply]:
    """Enqueue up to 1,000 jobs, all or none, and return them in order; `problems` lists what is wrong.

    With the header `Idempotency-Key` the n-th job without a key of its own has the header's, with `#n`.
    """
    key = call.request.headers.get(KEY_HEADER)
    named = [
        one if key is None or one.idempotency_key is not None else _with_key(one, f"{key}#{number}")
        for number, one in enumerate(body.jobs)
    ]
    return await _enqueue(call, named, note=body.note, is_batch=True)


def _with_key(body: NewJobBody, key: str | None) -> NewJobBody:
    if key is None:
        return body
    if body.idempotency_key not in {None, key}:
        raise bad_field("idempotency_key", "differs from the header Idempotency-Key", "send one of them")
    return msgspec.structs.replace(body, idempotency_key=key)


async def _enqueue(
    call: WebCall, bodies: Sequence[NewJobBody], *, note: str, is_batch: bool
) -> list[EnqueuedReply]:
    calls = await _calls(call, bodies)
    done = operation("jobs.enqueue", note=text_of("note", note))
    jobs = await call.app.client.aenqueue(calls, is_batch=is_batch, done=done)
    return await enqueued_replies(call.app, jobs)


async def _calls(call: WebCall, bodies: Sequence[NewJobBody]) -> list[Call[Any]]:
    """Return the calls; all that is wrong with any of them is raised at once."""
    tasks: dict[tuple[str, str], FoundTask] = {}
    calls: list[Call[Any]] = []
    problems: list[Problem] = []
    for index, body in enumerate(bodies):
        tenant = body.tenant or call.principal.tenant
        if tenant is None:
            hint = "name the tenant whose job it is; `system` is the application's own"
            problems.append(Problem(index, "tenant", "is missing", hint, "tenant_required"))
            continue
        scope_for(tenant)  # refuses another tenant's name before anything is looked up
        try:
            task = tasks.get((body.task, tenant)) or await find_by_name(call.app.client, body.task, tenant)
            tasks[body.task, tenant] = task
            calls.append(task.call(body.arguments, NO_OPTIONS.with_options(**_options(call, body, tenant))))
        except InvalidJob as error:
            problems += [Problem(index, one.field, one.message, one.hint, one.code) for one in error.problems]
    if problems:
        raise invalid_job(problems, is_batch=len(bodies) > 1)
    return calls


def _options(call: WebCall, body: NewJobBody, tenant: str) -> dict[str, Any]:
    options = msgspec.structs.asdict(body)
    for name in ("task", "arguments", "note"):
        options.pop(name, None)
    return {**options, "tenant": tenant, "created_by": body.created_by or call.principal.name}
