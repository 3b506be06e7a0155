"""`/tasks`: the tasks that workers have published, with their schemas; enqueue by hand.

All tenants share the tasks: for a caller of one tenant they are not there (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from fairlane.app.admin.published_tasks import PublishedTask, TaskVersion
from fairlane.model.access import Role
from fairlane.web.api.policies import HoldBody, OverrideBody, RateValue, end_in, rate_in, reason_in, shown
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup
from fairlane.web.forms.argument_texts import read_texts

TASKS: Final = EndpointGroup(
    "tasks", "Tasks: what workers have published, with schemas and versions; rates, pauses and closes."
)


class TaskList(msgspec.Struct, frozen=True):
    """All tasks, by name."""

    items: Sequence[PublishedTask]


class TaskDetail(msgspec.Struct, frozen=True):
    """A task, and each version of it that workers have published, newest first."""

    task: PublishedTask
    versions: Sequence[TaskVersion]


class TaskRateBody(OverrideBody, frozen=True, kw_only=True):
    """A task's rate."""

    rate: RateValue = UNSET


class EnqueueByHandBody(Change, frozen=True, kw_only=True):
    """A job to enqueue by hand; `note` says why and must not be empty.

    `arguments` are plain JSON values by parameter name. `texts` are the same as text, as forms send them:
    the published schema says what they are. An empty text counts as not given.
    """

    tenant: str
    arguments: Mapping[str, Any] = {}
    texts: Mapping[str, str] = {}
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    dedup_key: str | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None


class EnqueuedByHand(msgspec.Struct, frozen=True, kw_only=True):
    """The job that was enqueued; `created` is false if one of its keys named a job that is already there."""

    id: str
    tenant: str
    queue: str
    task: str
    state: str
    created: bool


@TASKS.get("/tasks", "tasks.find", tenants="all")
async def find(call: WebCall) -> TaskList:
    """Return all tasks by name: those that workers have published, and those with a policy."""
    return TaskList(tuple(map(shown, await call.app.tasks.alist())))


@TASKS.get("/tasks/{task}", "tasks.get", tenants="all")
async def get(call: WebCall, task: str) -> TaskDetail:
    """Return one task by its name or an alias, and each version of it with the schema of its arguments."""
    return TaskDetail(await _view(call, task), await call.app.tasks.aversions(task))


@TASKS.post("/tasks/{task}/pause", "tasks.pause", least=Role.OPERATOR, tenants="all")
async def pause(call: WebCall, task: str, body: HoldBody) -> PublishedTask:
    """Claim none of the task's jobs until it is resumed. Enqueues go on, running jobs finish."""
    await call.app.tasks.apause(task, reason=reason_in(body), until=await end_in(call, body))
    return await _view(call, task)


@TASKS.post("/tasks/{task}/resume", "tasks.resume", least=Role.OPERATOR, tenants="all")
async def resume(call: WebCall, task: str, body: Change) -> PublishedTask:
    """End the pause of a task."""
    await call.app.tasks.aresume(task, note=body.note)
    return await _view(call, task)


@TASKS.post("/tasks/{task}/close", "tasks.close", least=Role.OPERATOR, tenants="all")
async def close(call: WebCall, task: str, body: HoldBody) -> PublishedTask:
    """Refuse new jobs of a task until it is opened. Stored jobs go on."""
    await call.app.tasks.aclose(task, reason=reason_in(body), until=await end_in(call, body))
    return await _view(call, task)


@TASKS.post("/tasks/{task}/open", "tasks.open", least=Role.OPERATOR, tenants="all")
async def open_(call: WebCall, task: str, body: Change) -> PublishedTask:
    """End the close of a task."""
    await call.app.tasks.areopen(task, note=body.note)
    return await _view(call, task)


@TASKS.patch("/tasks/{task}", "tasks.set", least=Role.ADMIN, tenants="all")
async def set_(call: WebCall, task: str, body: TaskRateBody) -> PublishedTask:
    """Override a task's declared rate."""
    view = await call.app.tasks.aset(
        task, rate=rate_in("rate", body.rate), note=body.note, until=await end_in(call, body)
    )
    return shown(view)


@TASKS.post("/tasks/{task}/reset", "tasks.reset", least=Role.ADMIN, tenants="all")
async def reset(call: WebCall, task: str, body: Change) -> PublishedTask:
    """Remove the override, so that the declared values apply again."""
    return shown(await call.app.tasks.areset(task, note=body.note))


@TASKS.post(
    "/tasks/{task}/enqueue",
    "tasks.enqueue",
    least=Role.OPERATOR,
    tenants="all",
    status=201,
    done="A job of {task} was enqueued by hand.",
    leads_to="/jobs/{id}",
)
async def enqueue(call: WebCall, task: str, body: EnqueueByHandBody) -> EnqueuedByHand:
    """Enqueue one job of a task by hand; audited with its note.

    The arguments are held to the published schema, and all that is wrong with them is listed.
    """
    note = reason_in(body)
    arguments = dict(body.arguments)
    if body.texts:
        versions = await call.app.tasks.aversions(task)
        arguments |= read_texts(body.texts, versions[0].schema if versions else {})
    options = {
        "queue": body.queue or None,
        "priority": body.priority,
        "run_at": body.run_at,
        "dedup_key": body.dedup_key or None,
        "correlation_id": body.correlation_id or None,
        "idempotency_key": body.idempotency_key or None,
        "created_by": call.principal.name,
    }
    job = await call.app.tasks.aenqueue(task, arguments, tenant=body.tenant, note=note, **options)
    return EnqueuedByHand(
        id=str(job.id),
        tenant=job.tenant,
        queue=job.queue,
        task=job.task,
        state=job.state.value,
        created=job.created,
    )


async def _view(call: WebCall, task: str) -> PublishedTask:
    return shown(await call.app.tasks.aget(task))
