"""Dead letters: what failed for good, grouped by cause, and what people decide about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from fairlane.app.ambient import scope_for
from fairlane.app.dead.filters import DeadFilters
from fairlane.app.dead.views import DeadGroup
from fairlane.model.failure import ErrorClass
from fairlane.model.review import may_follow
from fairlane.store.contract.dead import DeadGetRequest
from fairlane.web.api.dead import SEE
from fairlane.web.api.dead_replies import dead_reply, dead_summaries
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.page import PageGroup, PageView

ReviewTab: TypeAlias = Literal["pending", "reprocessed", "resolved", "ignored", "discarded"]

_PAGE: Final = 50
_GROUPS: Final = 50
_LATEST: Final = 10


async def _awaiting(call: WebCall) -> int:
    return (await call.app.dead.acount(review="pending"))["pending"]


DEAD: Final = PageGroup("Dead letters", section="work", icon="dead", key="d", badge=_awaiting)


class DeadQuery(Body, frozen=True, kw_only=True):
    """What the URL of the list says: which letters, grouped or one by one, and where the page begins."""

    review: ReviewTab = "pending"
    by: Literal["failure", "list"] = "failure"
    tenant: str | None = None
    queue: str | None = None
    task: str | None = None
    error_class: ErrorClass | None = None
    fingerprint: str | None = None
    cursor: str | None = None

    @property
    def filters(self) -> DeadFilters:
        """The filters beside the review, as `app.dead` takes them."""
        return {
            "tenant": self.tenant or None,
            "queue": self.queue or None,
            "task": self.task or None,
            "error_class": self.error_class,
            "fingerprint": self.fingerprint or None,
        }


@DEAD.page("/dead", "dead.list", least=SEE)
async def list_dead(call: WebCall, query: DeadQuery) -> PageView:
    """Show the dead letters by their cause, largest first, or one by one; and one cause beside them."""
    dead, filters = call.app.dead, query.filters
    wide: DeadFilters = {**filters, "fingerprint": None, "review": query.review}
    groups = await dead.agroups(limit=_GROUPS, **wide)
    chosen = next((group for group in groups if group.fingerprint == query.fingerprint), None)
    is_list = query.by == "list"
    given: DeadFilters = {**filters, "review": query.review}
    page = await dead.afind(limit=_PAGE if is_list else _LATEST, cursor=query.cursor, **given)
    values: dict[str, Any] = {
        "query": query,
        "tabs": await dead.acount(**(filters if is_list else {**filters, "fingerprint": None})),
        "groups": groups,
        "total": sum(group.letters for group in groups),
        "is_all": len(groups) < _GROUPS,
        "chosen": chosen,
        "letters": await dead_summaries(call.app, page.items) if is_list or query.fingerprint else (),
        "chosen_filters": _form_fields({**given}),
        "sample": await _sample(call, chosen),
        "link": _linker(query),
        "next": _linker(query)(cursor=page.cursor) if is_list and page.cursor else "",
        "first": _linker(query)(cursor=None) if query.cursor else "",
    }
    return PageView("dead/list.html", values)


@DEAD.page("/dead/{id}", "dead.show", least=SEE)
async def show_dead(call: WebCall, id: UUID) -> PageView:
    """Show one dead letter, what was decided about it, and what can be done."""
    view = await call.app.dead.aget(id)
    letter = await call.app.client.store.dead.get(DeadGetRequest(scope=scope_for(None), id=id))
    if letter is None:  # deleted between the two calls
        return PageView("dead/gone.html", {"id": id}, 404)
    reply = await dead_reply(call.app, letter, view)
    values = {
        "letter": reply,
        "job": reply.job,
        "arguments": msgspec.json.format(msgspec.json.encode(reply.job.arguments), indent=2).decode(),
        "open": {action: may_follow(letter.review, action) for action in _ACTIONS},
    }
    return PageView("dead/letter.html", values)


_ACTIONS: Final = ("acknowledge", "reprocess", "resolve", "ignore", "discard")


async def _sample(call: WebCall, group: DeadGroup | None) -> Mapping[str, Any] | None:
    """Return the last failure of a cause: its job and the traceback of its last attempt."""
    if group is None:
        return None
    letter = await call.app.client.store.dead.get(DeadGetRequest(scope=scope_for(None), id=group.sample))
    if letter is None:
        return None
    reply = await dead_reply(call.app, letter, await call.app.dead.aget(group.sample))
    traces: Sequence[str] = [one.traceback for one in reply.job.attempts if one.traceback]
    return {"letter": reply, "traceback": traces[-1] if traces else None}


def _form_fields(filters: DeadFilters) -> Mapping[str, str]:
    """Return filters as the fields of a form."""
    return {name: str(value) for name, value in filters.items() if value}


def _linker(query: DeadQuery) -> Callable[..., str]:
    """Return a function that gives the URL of this list with other values."""
    defaults = msgspec.structs.asdict(DeadQuery())
    here = msgspec.structs.asdict(query)

    def link(**other: Any) -> str:
        values = here | {"cursor": None} | other
        given = {name: value for name, value in values.items() if value and value != defaults[name]}
        return "/dead" + (f"?{urlencode(given)}" if given else "")

    return link
