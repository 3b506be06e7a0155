"""Events: what happened, newest first, as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from fairlane.app.journals.reading import EVENT_KINDS, EventFilters
from fairlane.app.journals.views import EventView, event_json
from fairlane.model.journal.kinds import EventKind
from fairlane.web.call import WebCall
from fairlane.web.html.journal_rows import PAGE_SIZE, JournalPageQuery, flat, place_of
from fairlane.web.page import PageGroup, PageView

EVENTS: Final = PageGroup("Events", section="watch", icon="alerts", key="e")

_MOST: Final = 12

_OF_FAILURES: Final = frozenset({EventKind.DEAD_LETTER, EventKind.DEAD_LETTERS_EXPIRE})
"""Kinds whose subject is the fingerprint of a failure."""


class EventRow(msgspec.Struct, frozen=True):
    """An event as the page shows it, redacted: with its text, or with the facts of its body."""

    event: EventView
    subject: str
    place: str
    text: str
    facts: Sequence[tuple[str, str]]


class EventsPageQuery(JournalPageQuery, frozen=True, kw_only=True):
    """What the URL of the events says: also of which queue and task."""

    queue: str = ""
    task: str = ""

    @property
    def event_filters(self) -> EventFilters:
        """The filters as `app.events` takes them; ValueError for an invalid time."""
        return {**self.filters(), "queue": self.queue or None, "task": self.task or None}


@EVENTS.page("/events", "events.list")
async def list_events(call: WebCall, query: EventsPageQuery) -> PageView:
    """Show one page of the events that match, newest first."""
    values: dict[str, Any] = {"query": query, "kinds": EVENT_KINDS, "link": query.link}
    try:
        page = await call.app.events.afind(limit=PAGE_SIZE, cursor=query.cursor, **query.event_filters)
    except ValueError as error:
        return PageView("events/list.html", values | {"rows": (), "next": "", "error": str(error)}, 422)
    return PageView(
        "events/list.html",
        values
        | {
            "rows": [_row(event, sees_guards=call.principal.tenant is None) for event in page.items],
            "next": query.link("/events", cursor=page.cursor) if page.cursor else "",
            "error": "",
        },
    )


def _row(event: EventView, *, sees_guards: bool) -> EventRow:
    shown = event_json(event)
    place = place_of(event.subject)
    if place.startswith("/guards") and not sees_guards:
        place = ""
    if not place and event.kind in _OF_FAILURES and event.subject:
        place = f"/dead?{urlencode({'fingerprint': event.subject})}"
    facts = () if shown["text"] else list(flat(shown["body"]).items())[:_MOST]
    return EventRow(event, shown["subject"], place, shown["text"], facts)
