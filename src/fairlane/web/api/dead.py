"""Dead letters: read, decided about, run again, one at a time. All that match are in `dead_bulk`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from fairlane.app.admin.reveal import note_reveal
from fairlane.app.ambient import scope_for
from fairlane.app.dead.filters import DeadFilters, dead_filters_of
from fairlane.app.dead.totals import dead_total_of
from fairlane.app.job_json import arguments_json
from fairlane.app.redaction import Redactor
from fairlane.model.access import Role
from fairlane.model.errors import JobNotFound
from fairlane.model.failure import ErrorClass
from fairlane.model.review import Review
from fairlane.store.contract.dead import DeadGetRequest, DeadLetter, DeadTallyRequest
from fairlane.web.api.bodies import Cursor, Limit, Moment, Reasoned, Why
from fairlane.web.api.dead_replies import (
    DeadGroupReply,
    DeadPageReply,
    DeadReply,
    DeadStatisticsReply,
    DeletedReply,
    ReprocessedReply,
    dead_reply,
    dead_summaries,
    group_reply,
    statistics_reply,
)
from fairlane.web.api.job_replies import TotalReply, enqueued_replies
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup

DEAD: Final = EndpointGroup(
    "dead", "Dead letters: jobs that failed for good, and what people decided about them."
)

SEE: Final = "see_dead_letters"
REVIEW: Final = "review_dead_letters"


class DeadFiltersBody(Body, frozen=True, kw_only=True):
    """Which dead letters: all filters must hold. Times are of the death: [since, until)."""

    tenant: str | None = None
    queue: str | None = None
    task: str | None = None
    error_class: ErrorClass | None = None
    fingerprint: str | None = None
    review: Review | None = None
    acknowledged: bool | None = None
    since: Moment | None = None
    until: Moment | None = None

    @property
    def filters(self) -> DeadFilters:
        """The filters, as `app.dead` takes them."""
        return {
            "tenant": self.tenant,
            "queue": self.queue,
            "task": self.task,
            "error_class": self.error_class,
            "fingerprint": self.fingerprint,
            "review": self.review,
            "acknowledged": self.acknowledged,
            "since": self.since,
            "until": self.until,
        }


class FindDead(DeadFiltersBody, frozen=True, kw_only=True):
    """Which dead letters, and which page of them."""

    limit: Limit = 50
    cursor: Cursor = None
    total: Annotated[bool, Meta(description="Whether the first page says how many match.")] = True


class GroupDead(DeadFiltersBody, frozen=True, kw_only=True):
    """Which dead letters, and how many groups."""

    limit: Limit = 50


class NoteDead(Body, frozen=True, kw_only=True):
    """What others should know."""

    note: Why


class ReprocessDead(Change, frozen=True, kw_only=True):
    """Why, and what is another: arguments, of which those that are not named stay, or the queue."""

    arguments: Mapping[str, Any] | None = None
    to_queue: str | None = None


@DEAD.get("/dead", "dead.find", least=SEE)
async def find(call: WebCall, query: FindDead) -> DeadPageReply:
    """Find dead letters, latest death first; entries have no payload."""
    page = await call.app.dead.afind(limit=query.limit, cursor=query.cursor, **query.filters)
    total: TotalReply | None = None
    if query.total and query.cursor is None:
        request = DeadTallyRequest(**dead_filters_of(query.filters))
        found = await dead_total_of(call.app.client.store, request)
        total = TotalReply(number=found.number, is_exact=found.is_exact)
    return DeadPageReply(items=await dead_summaries(call.app, page.items), cursor=page.cursor, total=total)


@DEAD.get("/dead/groups", "dead.groups", least=SEE)
async def groups(call: WebCall, query: GroupDead) -> Sequence[DeadGroupReply]:
    """Group dead letters by cause: task, class, type, folded message, innermost frame; most letters first."""
    return [group_reply(one) for one in await call.app.dead.agroups(limit=query.limit, **query.filters)]


@DEAD.get("/dead/statistics", "dead.statistics", least=SEE)
async def statistics(call: WebCall, query: DeadFiltersBody) -> DeadStatisticsReply:
    """Count dead letters by queue, task, tenant, error class and review."""
    return statistics_reply(await call.app.dead.astatistics(**query.filters))


@DEAD.get("/dead/{id}", "dead.get", least=SEE)
async def get(call: WebCall, id: UUID) -> DeadReply:
    """Return everything about a dead letter and its job; what looks secret is `[redacted]`."""
    return await _shown(call, id)


@DEAD.post("/dead/{id}/acknowledge", "dead.acknowledge", least=REVIEW)
async def acknowledge(call: WebCall, id: UUID, body: Change) -> DeadReply:
    """Note that somebody looks after a dead letter; the first to do so stays."""
    await call.app.dead.aacknowledge(id, note=body.note)
    return await _shown(call, id)


@DEAD.post("/dead/{id}/note", "dead.note", least=REVIEW)
async def note(call: WebCall, id: UUID, body: NoteDead) -> DeadReply:
    """Add a note to a dead letter, whatever was decided about it."""
    await call.app.dead.anote(id, body.note)
    return await _shown(call, id)


@DEAD.post("/dead/{id}/reprocess", "dead.reprocess", least=REVIEW, status=201)
async def reprocess(call: WebCall, id: UUID, body: ReprocessDead) -> ReprocessedReply:
    """Run a dead job again as a new job, in its own queue or another, and return that.

    A letter that runs again already returns that job, with `created` false: of two people at the same time
    one makes a job, and both get it.
    """
    job = await call.app.dead.areprocess(id, arguments=body.arguments, to_queue=body.to_queue, note=body.note)
    (reply,) = await enqueued_replies(call.app, [job])
    return ReprocessedReply(id=id, job=reply)


@DEAD.post("/dead/{id}/resolve", "dead.resolve", least=REVIEW)
async def resolve(call: WebCall, id: UUID, body: Change) -> DeadReply:
    """Decide that a dead letter is dealt with: what its job was for was done otherwise."""
    await call.app.dead.aresolve(id, note=body.note)
    return await _shown(call, id)


@DEAD.post("/dead/{id}/ignore", "dead.ignore", least=REVIEW)
async def ignore(call: WebCall, id: UUID, body: Change) -> DeadReply:
    """Decide that a dead letter does not matter."""
    await call.app.dead.aignore(id, note=body.note)
    return await _shown(call, id)


@DEAD.post("/dead/{id}/discard", "dead.discard", least=REVIEW)
async def discard(call: WebCall, id: UUID, body: Change) -> DeadReply:
    """Decide for good that a dead letter must not run again; it is kept until its time is over."""
    await call.app.dead.adiscard(id, note=body.note)
    return await _shown(call, id)


@DEAD.delete("/dead/{id}", "dead.delete", least=Role.MANAGER)
async def delete(call: WebCall, id: UUID, body: Change) -> DeletedReply:
    """Delete a dead letter with its job for good, whatever was decided about it."""
    await call.app.dead.adelete(id, note=body.note)
    return DeletedReply(id=id)


@DEAD.post("/dead/{id}/payload", "dead.payload", least=Role.MANAGER, produces="application/octet-stream")
async def payload(call: WebCall, id: UUID, body: Reasoned) -> Response:
    """Download the arguments of a dead job in clear, as a JSON file. Who did it and why is audited first."""
    job = (await _letter(call, id)).job
    await note_reveal(call.app.client, job, "dead.payload", body.note)
    content = {
        "id": str(job.id),
        "tenant": job.tenant,
        "task": job.task,
        "version": job.version,
        "arguments": arguments_json(job, Redactor(reveals=True)),
    }
    name = f'attachment; filename="dead-{job.id}.json"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Response(msgspec.json.encode(content), headers=headers, media_type="application/octet-stream")


async def _shown(call: WebCall, id: UUID) -> DeadReply:
    return await dead_reply(call.app, await _letter(call, id), await call.app.dead.aget(id))


async def _letter(call: WebCall, id: UUID) -> DeadLetter:
    letter = await call.app.client.store.dead.get(DeadGetRequest(scope=scope_for(None), id=id))
    if letter is None:
        await call.app.dead.aget(id)  # raises why: no such job, or it is not dead
        raise JobNotFound(id)
    return letter
