"""Open pages stay current: one rendering for all viewers, changed parts alone, and an end where it must."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.model.errors import JobNotFound, StoreUnavailable
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.web.application import asgi
from fairlane.web.call import WebCall
from fairlane.web.live import LOOK_EVERY, MESSAGE_EVERY, PING_EVERY, LiveFeeds, Message
from fairlane.web.page import PageGroup
from fairlane.web.problem import HttpProblem
from tests.web.callers import ann

JOB = parse_id("01a1e9e4-b446-7c41-909a-7d2be5b33e81")


class Time:
    """A clock that a wait moves on at once; a rendering takes `costs`. Things may happen during a wait."""

    def __init__(self) -> None:
        """Begin some time after zero."""
        self.now: Micros = 1_000 * SECOND
        self.waits: list[Micros] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def wall(self) -> Instant:
        """Return the time."""
        return self.now

    def elapsed(self) -> Micros:
        """Return the time."""
        return self.now

    async def wait(self, duration: Micros) -> None:
        """Let time pass at once."""
        self.waits.append(duration)
        self.now += duration
        self.meanwhile()


class Watched:
    """A page with two live parts that a test sets, and the feeds of those who look at it."""

    def __init__(self, app: Fairlane) -> None:
        """Declare it."""
        self.time = Time()
        self.renderings: list[str | None] = []
        self.error: Exception | None = None
        self.costs: Micros = 0
        self.parts = {"a": "1", "b": "1"}
        group = PageGroup("Parts", section="work", icon="jobs")
        group.page("/parts", "parts")(self._show)
        group.page("/all", "all", tenants="all")(self._show)
        group.page("/parts/{id}", "part", method="POST")(self._show)
        site = asgi(app, authenticate=self.who, groups=(), pages=[group]).state.site
        self.site = site
        self.caller: Principal | None = ann()
        self.feeds = LiveFeeds(site, self.time)

    async def _show(self, call: WebCall) -> Response:
        self.renderings.append(call.principal.tenant)
        self.time.now += self.costs
        if self.error is not None:
            raise self.error
        parts = (f'<p id="{id}" data-live>{text}</p>' for id, text in self.parts.items())
        return HTMLResponse("".join(parts))

    async def who(self, _: Request) -> Principal | None:
        """Return who the caller is by now."""
        return self.caller

    @asynccontextmanager
    async def watching(
        self, principal: Principal | None = None, *, last: str = "", path: str = "/parts", cookie: str = ""
    ) -> AsyncIterator[AsyncGenerator[Message]]:
        """Look at the page."""
        call = WebCall(
            site=self.site, principal=principal or ann(), request=asked(cookie=cookie), request_id="1"
        )
        page, inside = self.feeds.find(call, path)

        async def still() -> Principal | None:
            return self.caller

        messages = self.feeds.watch(inside, page, last, still)
        try:
            yield messages
        finally:
            await messages.aclose()


def asked(path: str = "/live", cookie: str = "") -> Request:
    """Return a request as a server would give it."""
    headers = [(b"cookie", cookie.encode())] if cookie else []
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "root_path": "",
    }
    return Request(scope | {"headers": headers, "server": ("localhost", 80), "scheme": "http"})


def parts_of(message: Message) -> dict[str, str]:
    """Return the texts of the parts that a message carries."""
    assert message.event == "patch"
    return {id: html.partition(">")[2].partition("<")[0] for id, html in message.data["parts"].items()}


@pytest.fixture
def watched(app: Fairlane) -> Watched:
    """A page with two live parts that the test sets."""
    return Watched(app)


async def first_of(messages: AsyncGenerator[Message], *skipped: str) -> Message:
    """Return the next message that is of no skipped kind."""
    while (message := await anext(messages)).event in skipped:
        pass
    return message


async def test_a_viewer_gets_everything_first_and_then_what_changes(watched: Watched) -> None:
    """A part that stays the same is not sent again."""
    async with watched.watching() as messages:
        assert parts_of(await anext(messages)) == {"a": "1", "b": "1"}
        watched.parts["b"] = "2"
        message = await anext(messages)
        assert parts_of(message) == {"b": "2"}


async def test_a_change_comes_within_a_second_and_no_sooner_than_a_second_after_the_last(
    watched: Watched,
) -> None:
    """A page that changes all the time costs one message a second."""
    async with watched.watching() as messages:
        await anext(messages)
        begin = watched.time.now
        watched.parts["a"] = "2"
        await anext(messages)
        assert watched.time.now - begin == MESSAGE_EVERY
        await anext(watched_ping(messages))
        changed_at = watched.time.now
        watched.parts["a"] = "3"
        await first_of(messages, "ping")
        assert watched.time.now - changed_at <= LOOK_EVERY < MESSAGE_EVERY


async def watched_ping(messages: AsyncGenerator[Message]) -> AsyncGenerator[Message]:
    """Yield the first ping."""
    yield await first_of(messages, "patch")


async def test_many_viewers_of_a_page_cost_one_rendering(watched: Watched) -> None:
    """Whoever sees the same shares it, whatever their names."""
    bob = Principal(name="bob", role=Role.ADMIN)
    async with watched.watching() as one, watched.watching() as two, watched.watching(bob) as three:
        for messages in (one, two, three):
            assert parts_of(await anext(messages)) == watched.parts
        assert watched.renderings == [None]
        assert watched.feeds.viewers == 3
    assert watched.feeds.viewers == 0


@pytest.mark.parametrize(
    "other",
    [
        ann(tenant="acme"),
        ann(Role.VIEWER),
        Principal(name="ann", role=Role.ADMIN, grants=frozenset({"jobs.cancel"})),
    ],
)
async def test_who_sees_something_else_gets_a_rendering_of_their_own(
    watched: Watched, other: Principal
) -> None:
    """Nobody gets what was rendered for another tenant, role or grant."""
    async with watched.watching() as one, watched.watching(other) as two:
        await anext(one)
        await anext(two)
    assert watched.renderings == [None, other.tenant]


async def test_a_zone_of_ones_own_is_a_rendering_of_its_own(watched: Watched) -> None:
    """Times are part of it."""
    async with watched.watching() as one, watched.watching(cookie="fairlane_personal=zone=Asia/Tokyo") as two:
        await anext(one)
        await anext(two)
    assert len(watched.renderings) == 2


async def test_a_viewer_resumes_after_a_cut(watched: Watched) -> None:
    """It names the last message that it got and gets what changed since, or that nothing has."""
    async with watched.watching() as staying:
        last = (await anext(staying)).id
        watched.parts["a"] = "2"
        await anext(staying)
        async with watched.watching(last=last) as back:
            assert parts_of(await anext(back)) == {"a": "2"}
        async with watched.watching(last=f"{last.partition('-')[0]}-2") as back:
            assert (await anext(back)).event == "fresh"
        for unknown in ("", "other-1", f"{last}x", "-", "9"):
            async with watched.watching(last=unknown) as back:
                assert parts_of(await anext(back)) == {"a": "2", "b": "1"}


async def test_while_the_store_is_away_a_viewer_knows_since_when(watched: Watched) -> None:
    """What is on the screen stays; the stream goes on, and says when it is fresh again."""
    async with watched.watching() as messages:
        made_at = (await anext(messages)).data["at"]
        watched.error = StoreUnavailable("gone fishing")
        stale = await anext(messages)
        assert (stale.event, stale.data) == ("stale", {"since": made_at, "problem": "gone fishing"})
        watched.error, watched.parts["a"] = None, "2"
        assert (await first_of(messages, "ping")).event == "fresh"
        assert parts_of(await anext(messages)) == {"a": "2"}


@pytest.mark.parametrize("error", [JobNotFound(JOB), HttpProblem(404, "not_found", "gone"), LookupError()])
async def test_the_stream_of_a_page_that_is_gone_ends(watched: Watched, error: Exception) -> None:
    """Its job was removed, or moved to where the viewer may not look."""
    async with watched.watching() as messages:
        await anext(messages)
        watched.error = error
        assert [one.event async for one in messages] == ["gone"]


@pytest.mark.parametrize("now", [None, ann(Role.VIEWER), ann(tenant="acme")])
async def test_a_stream_ends_when_its_viewer_is_another_or_nobody(
    watched: Watched, now: Principal | None
) -> None:
    """A session that was ended, or a role that was lowered, holds for open pages too."""
    async with watched.watching() as messages:
        await anext(messages)
        watched.caller = now
        begin = watched.time.now
        assert [one.event async for one in messages] == ["gone"]
        assert watched.time.now - begin <= PING_EVERY + MESSAGE_EVERY


async def test_a_busy_stream_ends_too_when_its_viewer_is_nobody(watched: Watched) -> None:
    """S91: within 15 s, however often the page changes."""
    async with watched.watching() as messages:
        assert (await anext(messages)).event == "patch"
        for number in range(2, 40):
            watched.parts["a"] = str(number)
            watched.caller = None if number > 5 else watched.caller
            if (message := await anext(messages)).event == "gone":
                break
        assert message.event == "gone"
        assert 5 < number < 24


async def test_a_quiet_stream_pings(watched: Watched) -> None:
    """Whoever hears nothing for longer knows that the connection is dead."""
    async with watched.watching() as messages:
        await anext(messages)
        begin = watched.time.now
        assert (await anext(messages)).event == "ping"
        assert PING_EVERY <= watched.time.now - begin <= PING_EVERY + MESSAGE_EVERY


async def test_a_slow_page_is_rendered_less_often(watched: Watched) -> None:
    """Looking takes at most a twentieth of the time, however slow the store is."""
    watched.costs = SECOND
    async with watched.watching() as messages:
        await anext(messages)
        await anext(messages)  # a ping
        assert len(watched.renderings) == 1
        await first_of(messages, "patch")
        assert len(watched.renderings) == 2


async def test_a_viewer_may_want_fewer_changes(watched: Watched) -> None:
    """The personal setting counts between two messages."""
    async with watched.watching(cookie="fairlane_personal=refresh=5") as messages:
        await anext(messages)
        begin = watched.time.now
        watched.parts["a"] = "2"
        await first_of(messages, "ping")
        assert watched.time.now - begin == 5 * SECOND


@pytest.mark.parametrize("path", ["/nowhere", "/parts/7", "/static/app.css", "//parts", "/parts/"])
async def test_only_pages_can_be_watched(watched: Watched, path: str) -> None:
    """Anything else is not there, a page that does something included."""
    with pytest.raises(HttpProblem):
        async with watched.watching(path=path):
            pass


async def test_a_page_for_all_tenants_cannot_be_watched_by_one(watched: Watched) -> None:
    """It does not exist for them."""
    with pytest.raises(HttpProblem):
        async with watched.watching(ann(tenant="acme"), path="/all"):
            pass
    async with watched.watching(path="/all") as messages:
        assert (await anext(messages)).event == "patch"


def test_a_message_is_written_as_server_sent_events_are() -> None:
    """One line of data, whatever it holds."""
    message = Message("patch", {"parts": {"a": "x\n\ny"}}, "e-1")
    assert message.encode() == b'id: e-1\nevent: patch\ndata: {"parts":{"a":"x\\n\\ny"}}\n\n'
