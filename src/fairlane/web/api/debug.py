"""Look under the surface: whether a job is consistent, and what the store keeps. For administrators.

What is in a queue by state is `queues.contents`, what runs in a worker `workers.status` and `workers.dump`,
where a job came from `jobs.trace`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from uuid import UUID

from msgspec import Meta

from fairlane.app.ambient import scope_for
from fairlane.app.redaction import REDACTED
from fairlane.diagnosis.one_job import JobDiagnosis, diagnose_job
from fairlane.diagnosis.result import Level
from fairlane.model.access import Role
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.inspection import MAX_PARTS, InspectRequest
from fairlane.web.api.job_replies import Reply
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup

DEBUG: Final = EndpointGroup("debug", "Consistency of a job, and the tables or keys of the store.")

Parts = Annotated[int, Meta(ge=1, le=MAX_PARTS, description="How many of the largest to list.")]


class PartsQuery(Body, frozen=True, kw_only=True):
    """How many tables or keys."""

    limit: Parts = 100


class CheckReply(Reply, frozen=True, kw_only=True):
    """What was checked, how it is, and what to do about it."""

    check: str
    level: Level
    what: str
    advice: str


class JobInspection(Reply, frozen=True, kw_only=True):
    """All checks of a job. `is_sound`: none found anything bad. `suggested_actions` are their advice."""

    id: UUID
    state: State
    is_sound: bool
    checks: Sequence[CheckReply]
    suggested_actions: Sequence[str]


class PartReply(Reply, frozen=True, kw_only=True):
    """A table or key: what is in it, and in how many seconds the store removes it by itself, null for never.

    `entries` and `size` in bytes are null where they were not counted; PostgreSQL estimates the entries.
    """

    name: str
    kind: str
    entries: int | None
    size: int | None
    expires_in: float | None


class StoreContents(Reply, frozen=True, kw_only=True):
    """The largest tables or keys, largest first, and the store's own settings and numbers.

    Unless `is_complete`, there are more, or not all were counted within a second.
    """

    parts: Sequence[PartReply]
    is_complete: bool
    settings: Mapping[str, str]
    memory: int | None
    clients: int | None


@DEBUG.get("/jobs/{id}/inspect", "jobs.inspect", least=Role.ADMIN, tenants="all")
async def inspect_job(call: WebCall, id: UUID) -> JobInspection:
    """Check one job: its record, its claim, its task, and whether lists and counters that lead to it fit.

    Only reads. What does not fit is restored by `fairlane doctor --repair`.
    """
    found = await diagnosis_of(call, id)
    checks = check_replies(found)
    return JobInspection(
        id=id,
        state=found.job.state,
        is_sound=all(one.level != "bad" for one in checks),
        checks=checks,
        suggested_actions=[one.advice for one in checks if one.level != "ok" and one.advice],
    )


@DEBUG.get("/store", "store.contents", least=Role.ADMIN, tenants="all")
async def contents(call: WebCall, query: PartsQuery) -> StoreContents:
    """Return the largest tables or keys of the store with entries, bytes and expiry, and its raw numbers."""
    request = InspectRequest(scope=scope_for(None), at_most=0, parts=query.limit)
    found = await call.app.client.store.upkeep.inspect(request)
    return StoreContents(
        parts=[
            PartReply(
                name=one.name,
                kind=one.kind,
                entries=one.entries,
                size=one.size,
                expires_in=None if one.expires_in is None else one.expires_in / SECOND,
            )
            for one in found.parts
        ],
        is_complete=found.are_all_parts,
        settings=found.settings,
        memory=found.memory,
        clients=found.clients,
    )


async def diagnosis_of(call: WebCall, id: UUID) -> JobDiagnosis:
    """Return what all checks of a job have found; `JobNotFound` for one that is not the caller's."""
    scope = scope_for(None)
    record, waiting = await call.app.client.aget(id, scope), await call.app.jobs.aexplain(id)
    return await diagnose_job(call.app.client.store, scope, record, waiting)


def check_replies(found: JobDiagnosis) -> Sequence[CheckReply]:
    """Return checks as they may be shown: reasons quote what people wrote (S6)."""
    return [
        CheckReply(
            check=one.check,
            level=one.level,
            what=REDACTED.text(one.what) or "",
            advice=REDACTED.text(one.advice) or "",
        )
        for one in found.checks
    ]
