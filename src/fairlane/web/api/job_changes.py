"""Jobs, changed one at a time: cancel, run now, edit, fail, take back, condemn, again, reveal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from fairlane.app.admin.reveal import note_reveal
from fairlane.model.access import Role
from fairlane.model.errors import JobNotFound, WrongState
from fairlane.model.lifecycle.states import State
from fairlane.web.api.bodies import Moment, Reasoned
from fairlane.web.api.job_replies import CancelledReply, JobReply, StateReply, job_reply
from fairlane.web.api.jobs import stored_job
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup

JOB_CHANGES: Final = EndpointGroup("jobs", "One job, changed.")


class CancelJob(Change, frozen=True, kw_only=True):
    """Why, and whether also its children, their children and so on."""

    descendants: bool = False


class FailJob(Reasoned, frozen=True, kw_only=True):
    """Why, and whether it is tried again or dead."""

    retry: bool


class EditJob(Change, frozen=True, kw_only=True):
    """What is to be another; what is not named stays as it is.

    `arguments` names the ones to change. An `expires_at` of null removes the expiry. `tags` replaces all.
    """

    priority: int | None = None
    run_at: Moment | None = None
    delay: Annotated[float | None, Meta(description="Seconds from now.")] = None
    expires_at: Moment | UnsetType | None = UNSET
    expires_in: Annotated[float | None, Meta(description="Seconds from now.")] = None
    tags: Sequence[str] | None = None
    arguments: Mapping[str, Any] | None = None


@JOB_CHANGES.post("/jobs/{id}/cancel", "jobs.cancel", least=Role.OPERATOR)
async def cancel(call: WebCall, id: UUID, body: CancelJob) -> CancelledReply:
    """Cancel a job that waits, or ask one that runs to stop. A finished job stays as it is."""
    replies = await call.app.jobs.acancel(id, reason=body.note, descendants=body.descendants)
    if id not in replies:
        raise JobNotFound(id)
    others = [one for job, one in replies.items() if job != id and one != "finished"]
    return CancelledReply(answer=replies[id], others=len(others))


@JOB_CHANGES.post("/jobs/{id}/run_now", "jobs.run_now", least=Role.OPERATOR)
async def run_now(call: WebCall, id: UUID, body: Change) -> StateReply:
    """Make a delayed job ready now."""
    if not await call.app.jobs.arun_now(id, note=body.note):
        record = await stored_job(call, id)
        raise WrongState(id, record.state.value, "only a delayed job can be made ready", "leave it as it is")
    return StateReply(id=id, state=State.READY)


@JOB_CHANGES.patch("/jobs/{id}", "jobs.edit", least=Role.MANAGER)
async def edit(call: WebCall, id: UUID, body: EditJob) -> JobReply:
    """Change a waiting job: its priority, time, expiry, tags, arguments.

    All of it is checked before anything changes.
    """
    await call.app.jobs.aedit(
        id,
        priority=body.priority,
        run_at=body.run_at,
        delay=body.delay,
        expires_at=body.expires_at,
        expires_in=body.expires_in,
        tags=body.tags,
        arguments=body.arguments,
        note=body.note,
    )
    return await job_reply(call.app, await stored_job(call, id))


@JOB_CHANGES.post("/jobs/{id}/fail", "jobs.fail", least=Role.OPERATOR)
async def fail(call: WebCall, id: UUID, body: FailJob) -> StateReply:
    """Let a running job fail: to be tried again, or dead. Without a retry also a waiting job.

    The worker stops the handler when it renews its leases next, after some seconds.
    """
    return StateReply(id=id, state=await call.app.jobs.afail(id, retry=body.retry, reason=body.note))


@JOB_CHANGES.post("/jobs/{id}/take_back", "jobs.take_back", least=Role.OPERATOR)
async def take_back(call: WebCall, id: UUID, body: Reasoned) -> StateReply:
    """Make a running job ready again at its old place; no failure is counted.

    Danger: another worker may start the job while the handler still runs, for some seconds.
    """
    return StateReply(id=id, state=await call.app.jobs.atake_back(id, reason=body.note))


@JOB_CHANGES.post("/jobs/{id}/condemn", "jobs.condemn", least=Role.OPERATOR)
async def condemn(call: WebCall, id: UUID, body: Reasoned) -> StateReply:
    """Move a waiting job to the dead letters."""
    if not await call.app.jobs.acondemn(id, reason=body.note):
        record = await stored_job(call, id)
        raise WrongState(id, record.state.value, "only a waiting job can be moved", "fail or cancel it")
    return StateReply(id=id, state=State.DEAD)


@JOB_CHANGES.post("/jobs/{id}/again", "jobs.again", least=Role.OPERATOR, status=201)
async def again(call: WebCall, id: UUID, body: Change) -> JobReply:
    """Enqueue a copy of a succeeded or cancelled job, and return the new job.

    A dead job is run again from its dead letter.
    """
    job = await call.app.jobs.aagain(id, note=body.note)
    return await job_reply(call.app, await stored_job(call, job.id), created=job.created)


@JOB_CHANGES.post("/jobs/{id}/reveal", "jobs.reveal", least=Role.MANAGER)
async def reveal(call: WebCall, id: UUID, body: Reasoned) -> JobReply:
    """Return everything about a job in clear, secrets too. Who looked and why is audited first."""
    record = await stored_job(call, id)
    await note_reveal(call.app.client, record, "jobs.reveal", body.note)
    return await job_reply(call.app, record, reveals=True)
