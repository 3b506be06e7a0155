"""Keep open pages current: changed parts of a page, at most once a second, to everybody who looks at it.

A page that many look at is rendered once for all of them: for everybody with the same scope, role and time
zone. Whoever first finds the rendering too old makes a new one, while the others wait for it; so there is no
work without a viewer, and no task that could outlive them. One rendering is made at a time, and the next of
the same page begins no sooner than twenty times its duration later: looking costs a web process little.

A viewer that comes back after a cut names the last message that it got, and is sent what changed since. While
the store does not answer, viewers are told so, and since when.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, Final
from uuid import uuid4

import msgspec
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from fairlane.model.access import Principal, Role
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Instant, Micros, iso, to_datetime
from fairlane.runtime.clock import Clock, MachineClock
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Tenants
from fairlane.web.html.fragments import fragments
from fairlane.web.html.rendering import local_path, show
from fairlane.web.page import WebPage
from fairlane.web.personal import personal_of
from fairlane.web.problem import NOT_FOUND, HttpProblem
from fairlane.web.reading import BadRequest, bad_field, read_query
from fairlane.web.site import Site

LOOK_EVERY: Final[Micros] = SECOND * 7 // 10
"""How old a rendering may be. With the rendering itself, a change is on the screen within a second."""

MESSAGE_EVERY: Final[Micros] = SECOND
"""A viewer gets at most one message in this time."""

PING_EVERY: Final[Micros] = 15 * SECOND
"""After this long a viewer must still be known; and without a message it is told that the stream lives."""

_HEADERS: Final = {"x-accel-buffering": "no", "cache-control": "no-store"}
_REST: Final = 20
_MAX_VIEWERS: Final = 1_000
_MAX_PATH: Final = 8_000


class LiveRoute(msgspec.Struct, frozen=True):
    """Who may open a stream: everybody who is known. What it carries is held to the page's own rule."""

    name: str = "live"
    least: Role = Role.VIEWER
    tenants: Tenants = "own"


class LiveQuery(Body, frozen=True, kw_only=True):
    """Which page is open, and the last message that came, if the browser does not say so itself."""

    page: str
    last: str = ""


class Message(msgspec.Struct, frozen=True):
    """What a viewer is sent: `patch`, `stale`, `fresh`, `gone` or `ping`; it can resume behind an id."""

    event: str
    data: Any
    id: str = ""

    def encode(self) -> bytes:
        """Return it as server-sent events are written."""
        head = f"id: {self.id}\n" if self.id else ""
        return f"{head}event: {self.event}\n".encode() + b"data: " + msgspec.json.encode(self.data) + b"\n\n"


class _Gone(Exception):  # noqa: N818 (it is what happened)
    """The page is no longer there for this viewer."""


class Feed:
    """One page as one kind of viewer sees it: its parts, and in which version each of them came."""

    def __init__(self) -> None:
        self.epoch = uuid4().hex[:8]
        self.version = 0
        self.viewers = 0
        self.made_at: Instant = 0
        self.problem = ""
        self.lock = asyncio.Lock()
        self._next_at: Micros = 0
        self._parts: dict[str, tuple[int, str]] = {}

    def is_due(self, elapsed: Micros) -> bool:
        """Whether the rendering is too old."""
        return elapsed >= self._next_at

    def rest(self, begin: Micros, end: Micros) -> None:
        """Note how long a rendering took: the next one waits longer if this one was slow."""
        self._next_at = begin + max(LOOK_EVERY, _REST * (end - begin))

    def update(self, parts: Mapping[str, str], now: Instant) -> None:
        """Take a new rendering."""
        changed = {id for id, html in parts.items() if self._parts.get(id, (0, ""))[1] != html}
        self.version += bool(changed)
        self._parts = {
            id: (self.version, html) if id in changed else self._parts[id] for id, html in parts.items()
        }
        self.made_at, self.problem = now, ""

    def since(self, version: int) -> dict[str, str]:
        """Return the parts that are newer than a version."""
        return {id: html for id, (of, html) in self._parts.items() if of > version}

    def read_id(self, last: str) -> int:
        """Return the version that a viewer has; 0 if it cannot be told, and everything is sent."""
        epoch, _, version = last.partition("-")
        return int(version) if epoch == self.epoch and version.isdecimal() else 0


class LiveFeeds:
    """The pages that somebody looks at, of one web application."""

    def __init__(self, site: Site, clock: Clock | None = None) -> None:
        self._site = site
        self._clock = clock or MachineClock()
        self._feeds: dict[tuple[Any, ...], Feed] = {}
        self._rendering = asyncio.Lock()
        self._pages = [
            (compile_path(page.path), page) for group in site.pages for page in group if page.method == "GET"
        ]

    @property
    def viewers(self) -> int:
        """How many look at a page now."""
        return sum(feed.viewers for feed in self._feeds.values())

    def find(self, call: WebCall, path: str) -> tuple[WebPage, WebCall]:
        """Return the page at a path below the prefix, and the call that would ask for it."""
        bare, _, query = path.partition("?")
        for (pattern, _, convertors), page in self._pages:
            match = pattern.match(bare)
            if match is not None and call.may_see(page):
                values = {name: convertors[name].convert(text) for name, text in match.groupdict().items()}
                root: str = call.request.scope.get("root_path", "")
                scope = dict(call.request.scope) | {
                    "path": root + bare,
                    "raw_path": (root + bare).encode(),
                    "query_string": query.encode(),
                    "path_params": values,
                }
                return page, msgspec.structs.replace(call, request=Request(scope))
        raise HttpProblem(404, "not_found", NOT_FOUND)

    async def watch(
        self, call: WebCall, page: WebPage, last: str, still: Callable[[], Awaitable[Principal | None]]
    ) -> AsyncGenerator[Message]:
        """Yield what changes on a page. `still` says who the viewer is now."""
        every = max(MESSAGE_EVERY, _refresh_of(call))
        with self._joined(call) as feed:
            seen, told_at = feed.read_id(last), self._clock.elapsed()
            told: str | None = None if seen else ""  # whoever comes back may think that the page is stale
            known_at = told_at
            while True:
                if self._clock.elapsed() - known_at >= PING_EVERY:  # on a busy page, too
                    known_at = self._clock.elapsed()
                    if not await _is_still(call.principal, still):
                        yield Message("gone", {})
                        return
                try:
                    await self._refresh(feed, call, page)
                except _Gone:
                    yield Message("gone", {})
                    return
                now = self._clock.elapsed()
                if feed.problem != told:
                    was, told, told_at = told, feed.problem, now
                    if told or was or feed.version == seen:
                        yield _stale(feed) if told else Message("fresh", {})
                if not told and feed.version > seen:
                    parts, seen, told_at = feed.since(seen), feed.version, now
                    data = {"parts": parts, "at": iso(to_datetime(feed.made_at))}
                    yield Message("patch", data, f"{feed.epoch}-{seen}")
                    await self._clock.wait(every)
                elif now - told_at >= PING_EVERY:
                    told_at = now
                    yield Message("ping", {})
                else:
                    await self._clock.wait(LOOK_EVERY if every == MESSAGE_EVERY else every)

    async def _refresh(self, feed: Feed, call: WebCall, page: WebPage) -> None:
        """Render the page anew if its rendering is too old and nobody else does it."""
        async with feed.lock:
            if not feed.is_due(self._clock.elapsed()):
                return
            async with self._rendering:
                begin = self._clock.elapsed()
                try:
                    with call.acting("web"):
                        response = await show(call, page)
                except (LookupError, HttpProblem, BadRequest) as error:
                    raise _Gone from error
                except (StoreError, TimeoutError, OSError) as error:
                    feed.problem = str(error) or type(error).__name__
                else:
                    if response.status_code >= 300:  # noqa: PLR2004 (it leads elsewhere, or is an error)
                        raise _Gone
                    feed.update(fragments(bytes(response.body).decode()), self._clock.wall())
                finally:
                    feed.rest(begin, self._clock.elapsed())

    @contextmanager
    def _joined(self, call: WebCall) -> Generator[Feed]:
        """Look at the feed that everybody shares who sees the same."""
        principal = call.principal
        root = call.request.scope.get("root_path", "")
        zone = personal_of(call.request.cookies).zone
        key = (root, local_path(call), principal.tenant, principal.role, principal.grants, zone)
        feed = self._feeds.setdefault(key, Feed())
        feed.viewers += 1
        try:
            yield feed
        finally:
            feed.viewers -= 1
            if not feed.viewers:
                self._feeds.pop(key, None)


def live_of(site: Site) -> Callable[[WebCall, Any], Awaitable[Response]]:
    """Return what answers `GET /live?page=…` of a web application, to callers who are known."""
    feeds = LiveFeeds(site)

    async def serve(call: WebCall, _: object) -> Response:
        query = read_query(call.request.query_params, LiveQuery)
        if len(query.page) > _MAX_PATH or not query.page.startswith("/"):
            raise bad_field("page", "is not a path of a page", "give what stands behind the prefix")
        if feeds.viewers >= _MAX_VIEWERS:
            raise HttpProblem(
                503, "too_many_viewers", "too many pages are open", headers={"retry-after": "30"}
            )
        page, asked = feeds.find(call, query.page)

        async def still() -> Principal | None:
            return await site.authenticate(call.request)

        last = call.request.headers.get("last-event-id", query.last)
        messages = feeds.watch(asked, page, last, still)
        return EventSourceResponse(_encoded(messages), ping=0, send_timeout=30, headers=_HEADERS)

    return serve


async def _is_still(principal: Principal, still: Callable[[], Awaitable[Principal | None]]) -> bool:
    """Whether a viewer is who it was. While the store is away that is not known, and nothing is shown."""
    try:
        return await still() == principal
    except StoreError:
        return True


async def _encoded(messages: AsyncGenerator[Message]) -> AsyncIterator[bytes]:
    async with aclosing(messages):
        async for message in messages:
            yield message.encode()


def _refresh_of(call: WebCall) -> Micros:
    refresh = personal_of(call.request.cookies).refresh
    return 0 if refresh == "off" else int(refresh) * SECOND


def _stale(feed: Feed) -> Message:
    since = iso(to_datetime(feed.made_at)) if feed.made_at else None
    return Message("stale", {"since": since, "problem": feed.problem[:300]})
