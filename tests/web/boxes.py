"""A noun for tests of the web itself, so that they need none of the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairlane.app.acting import current_actor, current_origin
from fairlane.app.ambient import current_tenant
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup
from fairlane.web.page import PageGroup, PageView
from fairlane.web.problem import ProblemReply

boxes = EndpointGroup("boxes", "Boxes.")
pages = PageGroup("Boxes", section="watch", icon="info")


class BoxReply(msgspec.Struct, frozen=True):
    """What is known of a box, and of the request."""

    name: str
    actor: str
    origin: str
    content: Any = None


class Filling(Change, frozen=True, kw_only=True):
    """What goes into a box."""

    count: int
    labels: Sequence[str] = ()
    content: Mapping[str, Any] = msgspec.field(default_factory=dict)
    until: float | None = None


class Search(Body, frozen=True, kw_only=True):
    """What to look for."""

    limit: int = 10


def _reply(name: str, content: Any = None) -> BoxReply:
    return BoxReply(name, current_actor(), current_origin(), content)


@boxes.get("/boxes", "boxes.find")
async def find(call: WebCall, query: Search) -> list[BoxReply]:
    """List boxes."""
    try:
        tenant = current_tenant()
    except LookupError:
        tenant = "all"
    return [_reply(tenant)] * min(query.limit, 2)


@boxes.post("/boxes/{name}/fill", "boxes.fill", least=Role.OPERATOR, done="Box {name} is filled.")
async def fill(call: WebCall, name: str, body: Filling) -> BoxReply:
    """Fill a box."""
    if name == "broken":
        raise RuntimeError("password=hunter2 in the engine room")
    if body.count > 9:
        raise ValueError("count: is too large; send 9 at most")
    return _reply(name, {"count": body.count, "labels": body.labels, "content": body.content})


@boxes.delete("/boxes/{name}", "boxes.remove", least=Role.MANAGER, tenants="all")
async def remove(call: WebCall, name: str, body: Change) -> BoxReply:
    """Remove a box."""
    return _reply(name, body.note)


@pages.page("/boxes", "boxes")
async def show(call: WebCall, query: Search) -> PageView:
    """Show all boxes."""
    text = "" if call.flash is None else call.flash.text
    return PageView("error.html", {"problem": ProblemReply(title="Boxes", status=200, code="", detail=text)})
