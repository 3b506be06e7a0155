"""How often one caller may ask, and how long one answer may take."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Rate
from fairlane.web.call import WebCall
from fairlane.web.declare import EndpointGroup
from fairlane.web.http.rates import MOST_CALLERS, CallerRates
from fairlane.web.page import PageGroup, PageView
from fairlane.web.problem import HttpProblem
from tests.app.world import World
from tests.web.boxes import boxes, pages
from tests.web.callers import ann, web_of

BOXES: Any = {"groups": [boxes], "pages": [pages]}


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now


def test_a_caller_asks_at_its_rate_and_a_burst_at_once() -> None:
    """Afterwards it must wait for as long as the answer says, and not a moment longer."""
    hands = Hands()
    rates, rate = CallerRates(hands), Rate(60, "minute", burst=3)
    for _ in range(3):
        rates.take("ann", rate)
    with pytest.raises(HttpProblem) as refused:
        rates.take("ann", rate)
    assert (refused.value.status, refused.value.headers) == (429, {"retry-after": "1"})
    rates.take("bob", rate)
    hands.now += SECOND
    rates.take("ann", rate)
    with pytest.raises(HttpProblem):
        rates.take("ann", rate)


def test_callers_take_a_bounded_room() -> None:
    """Of very many, those that asked least recently are forgotten."""
    rates, rate = CallerRates(Hands()), Rate(1, "minute")
    for number in range(MOST_CALLERS + 5):
        rates.take(f"caller {number}", rate)
    assert len(rates) == MOST_CALLERS
    rates.take("caller 0", rate)
    with pytest.raises(HttpProblem):
        rates.take(f"caller {MOST_CALLERS + 4}", rate)


def limited(world: World, **keys: Any) -> Fairlane:
    """Return an application whose web has these settings."""
    return world.app(config={"web": keys})


async def test_a_caller_that_asks_too_often_is_told_when_to_ask_again(world: World) -> None:
    """Another caller is not; files and health are for everybody."""
    app = limited(world, rate={"limit": 1, "per": "hour", "burst": 2})
    async with web_of(app, ann(), **BOXES) as web:
        answers = [await web.get("/api/v1/boxes") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].json()["code"] == "too_many_requests"
        assert 0 < int(answers[2].headers["retry-after"]) <= 3600
        assert (await web.get("/boxes")).status_code == 429
        assert (await web.get("/static/app.css")).status_code == 200
        web._transport.app.state.site.authenticate = _bob  # type: ignore[attr-defined]
        assert (await web.get("/api/v1/boxes")).status_code == 200


async def _bob(_: Any) -> Principal:
    return Principal(name="bob", role=Role.VIEWER)


async def test_guessing_is_limited_too_but_asking_without_anything_is_not(world: World) -> None:
    """Each guess would be a question to the store; a request without credentials is none."""
    app = limited(world, rate={"limit": 1, "per": "hour", "burst": 2})
    async with web_of(app, None, **BOXES) as web:
        for _ in range(4):
            assert (await web.get("/api/v1/boxes")).status_code == 401
        guess = {"authorization": "Bearer fl_guess"}
        answers = [await web.get("/api/v1/boxes", headers=guess) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [401, 401, 429]


async def test_without_a_rate_nobody_is_limited(world: World) -> None:
    """The setting can be turned off where a proxy does it."""
    async with web_of(limited(world, rate="none"), ann(), **BOXES) as web:
        answers = {(await web.get("/api/v1/boxes")).status_code for _ in range(300)}
        assert answers == {200}


# ── how long an answer may take ───────────────────────────────────────────────

slow, slow_pages = EndpointGroup("slow", "Slow."), PageGroup("Slow", section="watch", icon="info")
ended: list[str] = []


async def _never(name: str) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ended.append(name)
        raise


@slow.get("/slow", "slow.read")
async def read_slowly(call: WebCall) -> str:
    """Read for ever."""
    await _never("read")
    return ""


@slow.get("/patient", "slow.wait", limited=False)
async def wait_patiently(call: WebCall) -> str:
    """Wait for longer than reading may take."""
    await asyncio.sleep(3 * call.site.settings.statement_limit / SECOND)
    return "there"


@slow.get("/own", "slow.own")
async def give_up(call: WebCall) -> str:
    """Give up by itself."""
    raise TimeoutError


@slow_pages.page("/slow", "slow")
async def show_slowly(call: WebCall) -> PageView:
    """Read for ever."""
    await _never("page")
    return PageView("", {})


async def test_what_reads_for_too_long_is_stopped(world: World) -> None:
    """Endpoints and pages; what waits for others is not, and a timeout of the handler's own is its own."""
    ended.clear()
    app = limited(world, statement_limit="100ms")
    async with web_of(app, ann(), groups=[slow], pages=[slow_pages]) as web:
        answer = await web.get("/api/v1/slow")
        assert (answer.status_code, answer.json()["code"]) == (504, "too_slow")
        assert (await web.get("/slow")).status_code == 504
        assert ended == ["read", "page"]
        assert (await web.get("/api/v1/patient")).json() == "there"
        assert (await web.get("/api/v1/own")).status_code == 500
