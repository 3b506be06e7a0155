"""`/events`: what happened, as pages and as a stream. A caller of one tenant sees that tenant's (S76)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent

from fairlane.app.journals.views import EventView, event_json
from fairlane.model.instants import SECOND, Micros
from fairlane.model.journal.kinds import Addressee, Severity
from fairlane.runtime.clock import MachineClock
from fairlane.web.api.audit import JournalQuery
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup
from fairlane.web.reading import bad_field

EVENTS: Final = EndpointGroup("events", "Events: what happened, in the order of their numbers.")

PING_EVERY: Final = 15
"""Seconds between two signs of life of a quiet stream."""

KNOWN_FOR: Micros = 15 * SECOND
"""After this long nothing is sent before the caller was looked up again."""

RETRY_AFTER: Final = 2_000
"""Milliseconds after which a client connects again."""


class EventItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; `count` says how often. Secrets are redacted.

    `body` has facts for programs, amounts of money in millionths and instants in microseconds; `text` says
    these in words, and is empty for other kinds.
    """

    number: int
    at: str
    kind: str
    severity: Severity
    addressee: Addressee
    tenant: str | None
    subject: str
    count: int
    text: str
    body: dict[str, Any]


class EventPage(msgspec.Struct, frozen=True):
    """One page of events, newest first. Without a cursor there are no more."""

    items: Sequence[EventItem]
    cursor: str | None


class EventsQuery(JournalQuery, frozen=True, kw_only=True):
    """Which events: of these kinds, about this subject, queue or task, in this time."""

    queue: str | None = None
    task: str | None = None

    def filters(self) -> dict[str, Any]:
        """Return the filters as `find` takes them."""
        return super().filters() | {"queue": self.queue or None, "task": self.task or None}


class StreamQuery(Body, frozen=True, kw_only=True):
    """Which events, and after which number to begin; without it the stream begins with the next event.

    The header `Last-Event-ID`, which browsers send when they connect again, counts more than `after`.
    """

    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    kind: tuple[str, ...] = ()
    subject: str | None = None
    tenant: str | None = None
    queue: str | None = None
    task: str | None = None
    since: datetime | None = None


@EVENTS.get("/events", "events.find")
async def find(call: WebCall, query: EventsQuery) -> EventPage:
    """Return one page of the events that match, newest first."""
    page = await call.app.events.afind(limit=query.limit, cursor=query.cursor or None, **query.filters())
    return EventPage(tuple(EventItem(**event_json(event)) for event in page.items), page.cursor)


@EVENTS.get("/events/stream", "events.stream", produces="text/event-stream")
async def stream(call: WebCall, query: StreamQuery) -> EventSourceResponse:
    """Stream the events that match as they happen, as server-sent events.

    The id of a message is the event's number: a client that connects again with it in `Last-Event-ID` gets
    each event once.
    """
    # The tenant is part of what `atail` reads from here on: the stream goes on outside of this call.
    events = call.app.events.atail(
        after=_after(call, query),
        kind=query.kind or None,
        subject=query.subject or None,
        tenant=query.tenant or None,
        queue=query.queue or None,
        task=query.task or None,
        since=query.since,
    )
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return EventSourceResponse(_messages(call, events), ping=PING_EVERY, headers=headers)


def _after(call: WebCall, query: StreamQuery) -> int | None:
    last = call.request.headers.get("last-event-id", "")
    if not last:
        return query.after
    if not (last.isascii() and last.isdecimal() and len(last) < len(str(2**63))):
        raise bad_field("Last-Event-ID", f"is {last[:40]!r}", "send the id of the last message")
    return int(last)


async def _messages(call: WebCall, events: AsyncIterator[EventView]) -> AsyncIterator[ServerSentEvent]:
    """Yield events for as long as the caller is who it was: a token may be revoked meanwhile."""
    clock = MachineClock()
    known_at = clock.elapsed()
    yield ServerSentEvent(comment="events follow", retry=RETRY_AFTER)
    async for event in events:
        if clock.elapsed() - known_at >= KNOWN_FOR:
            if await call.site.authenticate(call.request) != call.principal:
                return
            known_at = clock.elapsed()
        data = msgspec.json.encode(EventItem(**event_json(event))).decode()
        yield ServerSentEvent(data=data, event=event.kind, id=str(event.number))
