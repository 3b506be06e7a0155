"""`fairlane breakers`: what each circuit breaker is, and by hand: open, close, reset."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fairlane.model.policy.overrides import BreakerRules
from tests.cli.shell import Shell
from tests.contract.breakers.scene import guard, phase_of, report, state_of
from tests.contract.world import World


@pytest.fixture(autouse=True)
def _who(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is ops@desk, whoever runs the tests."""
    monkeypatch.setattr("fairlane.app.acting.getuser", lambda: "ops")
    monkeypatch.setattr("fairlane.app.acting.host", lambda: "desk")


async def outage(world: World) -> None:
    """Let five failures of two tenants open the breaker; jobs of both meet it."""
    await guard(world)
    await world.enqueue_many(2, "acme", task="send")
    await world.enqueue("globex", task="send")
    await report(world, "globex", succeeded=4)
    world.advance(30)
    await report(world, "globex", failed=2)
    await report(world, "acme", failed=3)
    assert await world.claim(9) == []


async def outage_of_one(world: World) -> None:
    """Let each tenant have its own, of which one opens."""
    await guard(world, rules=BreakerRules(per="tenant"))
    await report(world, "globex", failed=3)
    await report(world, "acme", failed=5)


def phase(store: Shell, tenant: str = "acme") -> str:
    """Return what the breaker is in the store."""
    return store.in_store(lambda world: phase_of(world, tenant))


def shown(store: Shell, *words: str) -> dict[str, Any]:
    """Return the one object that a command prints for programs."""
    (told,) = store.run("breakers", *words, "--json").objects
    return told


# ── what they are ────────────────────────────────────────────────────────────


def test_they_are_listed(store: Shell) -> None:
    """The whole table; `list` may be left out; before there is one, a sentence."""
    assert store.output_of("breakers") == "No breaker is known yet.\n"
    store.in_store(outage)
    table = (
        "BREAKER  TENANT  STATE  LETS PASS FROM           AT ONCE  WAITING  FAILURES  OPENED  SET BY\n"
        "mail     -       open   2027-01-15 08:01:30 UTC        0        2  0/5            1  -\n"
    )
    assert store.output_of("breakers") == store.output_of("breakers", "list") == table


def test_those_of_single_tenants_are_listed_too(store: Shell) -> None:
    """By name, then tenant."""
    store.in_store(outage_of_one)
    found = store.run("breakers", "list", "--json").objects
    assert [(one["name"], one["tenant"], one["state"], one["recent_failures"]) for one in found] == [
        ("mail", "acme", "open", 0),
        ("mail", "globex", "closed", 3),
    ]
    own = shown(store, "show", "mail", "--tenant", "globex")
    assert (own["tenant"], own["failed"], own["per"]) == ("globex", 3, "tenant")


def test_an_open_one_is_shown(store: Shell) -> None:
    """The whole record: until when, who waits, what was counted, and the rules."""
    store.in_store(outage)
    store.clock.advance(20)
    assert store.output_of("breakers", "show", "mail") == (
        "breaker          mail\n"
        "state            open\n"
        "lets pass from   2027-01-15 08:01:30 UTC (in 40s)\n"
        "at once          0\n"
        "passing          0\n"
        "waiting          2\n"
        "recent failures  0 of 5 in 60 s\n"
        "succeeded        4\n"
        "failed           5\n"
        "opened           once\n"
        "last failure     2027-01-15 08:00:30 UTC (20s ago)\n"
        "last opened      2027-01-15 08:00:30 UTC (20s ago)\n"
        "open for         60 s\n"
        "per              all\n"
        "on open          snooze\n"
        "ramp             8\n"
    )


def test_programs_get_all_of_it(store: Shell) -> None:
    """With times as every command writes them."""
    store.in_store(outage)
    assert shown(store, "show", "mail") == {
        "name": "mail",
        "tenant": None,
        "state": "open",
        "recent_failures": 0,
        "until": "2027-01-15T08:01:30.000000Z",
        "slots": 0,
        "passing": 0,
        "waiting": 2,
        "succeeded": 4,
        "failed": 5,
        "trips": 1,
        "last_failure_at": "2027-01-15T08:00:30.000000Z",
        "opened_at": "2027-01-15T08:00:30.000000Z",
        "half_opened_at": None,
        "closed_at": None,
        "forced": None,
        "failures": 5,
        "window": 60.0,
        "open_for": 60.0,
        "per": "all",
        "on_open": "snooze",
        "ramp": 8,
    }


def test_a_half_open_one_shows_who_passes(store: Shell) -> None:
    """One of one, since when."""
    store.in_store(outage)
    store.clock.advance(60)
    store.in_store(lambda world: world.claim(9))
    text = store.output_of("breakers", "show", "mail")
    for line in (
        "state            half-open\n",
        "at once          1\n",
        "passing          1\n",
        "half-opened      2027-01-15 08:01:30 UTC (now)\n",
    ):
        assert line in text
    assert "lets pass from" not in text


def test_one_that_was_never_used_is_closed(store: Shell) -> None:
    """With the default rules; it is in no list."""
    told = shown(store, "show", "mail")
    assert (told["state"], told["slots"], told["failures"]) == ("closed", None, 5)
    assert store.output_of("breakers") == "No breaker is known yet.\n"


# ── by hand ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "end", [["--for", "10m"], ["--until", "2027-01-15T08:10:30Z"]], ids=lambda end: end[0]
)
def test_opened_until_then_it_lets_one_pass_afterwards(store: Shell, end: list[str]) -> None:
    """By the store's clock; it is shown who did it and why."""
    store.in_store(guard)
    store.in_store(lambda world: world.enqueue_many(2, task="send"))
    store.in_store(report)
    store.clock.advance(30)
    answer = store.output_of("breakers", "open", "mail", "--note", "maintenance", *end)
    assert answer == "breaker mail is open, until 2027-01-15 08:10:30 UTC (in 10m).\n"
    said = "set by           ops@desk, until 2027-01-15 08:10:30 UTC (in 10m): maintenance\n"
    assert said in store.output_of("breakers", "show", "mail")
    store.clock.advance(599)
    assert store.in_store(lambda world: world.claim(9)) == []
    store.clock.advance(1)
    assert len(store.in_store(lambda world: world.claim(9))) == 1
    assert "set by" not in store.output_of("breakers", "show", "mail")


def test_opened_without_an_end_it_stays_so(store: Shell) -> None:
    """`--reason` is the same as `--note`; nobody knows when it lets somebody pass."""
    store.in_store(outage)
    answer = store.output_of("breakers", "open", "mail", "--reason", "moving")
    assert answer == "breaker mail is open, until `fairlane breakers reset`.\n"
    store.clock.advance(10 * 86_400)
    told = shown(store, "show", "mail")
    assert (told["state"], told["until"], told["trips"]) == ("open", None, 2)
    assert told["forced"] == {
        "state": "open",
        "who": "ops@desk",
        "reason": "moving",
        "at": "2027-01-15T08:00:30.000000Z",
        "until": None,
    }


def test_an_end_that_has_passed_is_shown_as_it_was_given(store: Shell) -> None:
    """It lets one pass at once, and does not stay open."""
    store.in_store(outage)
    answer = store.output_of("breakers", "open", "mail", "--note", "x", "--until", "2027-01-15T08:00:00Z")
    assert answer == "breaker mail is open, until 2027-01-15 08:00:00 UTC (30s ago).\n"
    assert len(store.in_store(lambda world: world.claim(9))) == 1


def test_closed_by_hand_no_failure_opens_it(store: Shell) -> None:
    """Until its end, and it answers programs with what it is now."""
    store.in_store(outage)
    told = shown(store, "close", "mail", "--note", "it is us", "--for", "1h")
    assert (told["state"], told["forced"]["until"]) == ("closed", "2027-01-15T09:00:30.000000Z")
    store.in_store(lambda world: report(world, failed=50))
    assert phase(store) == "closed"
    store.clock.advance(3_600)
    store.in_store(lambda world: report(world, failed=5))
    assert phase(store) == "open"
    answer = store.output_of("breakers", "close", "mail", "--note", "still us")
    assert answer == "breaker mail is closed, until `fairlane breakers reset`.\n"


def test_a_reset_forgets_what_was_counted_and_set(store: Shell) -> None:
    """A note is not needed; how often it has opened stays."""
    store.in_store(outage)
    store.output_of("breakers", "open", "mail", "--note", "moving")
    assert store.output_of("breakers", "reset", "mail") == "breaker mail is closed, with nothing counted.\n"
    state = store.in_store(state_of)
    assert (state.slots, state.failed, state.forced, state.trips) == (None, 0, None, 2)
    assert len(store.in_store(lambda world: world.claim(9))) == 3
    assert shown(store, "reset", "mail", "--note", "again")["state"] == "closed"


def test_that_of_one_tenant_is_set_alone(store: Shell) -> None:
    """By each of the three."""
    store.in_store(outage_of_one)
    store.output_of("breakers", "reset", "mail", "--tenant", "acme")
    store.output_of("breakers", "open", "mail", "--tenant", "globex", "--note", "their server")
    assert (phase(store, "acme"), phase(store, "globex")) == ("closed", "open")
    store.output_of("breakers", "close", "mail", "--tenant", "globex", "--note", "it is up")
    assert phase(store, "globex") == "closed"


def test_what_is_set_is_in_the_audit(store: Shell) -> None:
    """Who, from where, why."""
    store.in_store(outage)
    store.output_of("breakers", "open", "mail", "--note", "moving")
    store.output_of("breakers", "reset", "mail", "--note", "moved")
    found = store.run("audit", "--json").objects
    assert [(one["kind"], one["subject"], one["actor"], one["origin"], one["note"]) for one in found] == [
        ("breakers.reset", "breaker mail", "ops@desk", "cli", "moved"),
        ("breakers.open", "breaker mail", "ops@desk", "cli", "moving"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["open", "mail"], "Missing option '--note'"),
        (["close", "mail"], "Missing option '--note'"),
        (["open", "mail", "--note", " "], "it is empty; give a reason in a few words"),
        (["close", "mail", "--reason", "x" * 2_001], "use at most 2,000"),
        (["reset", "mail", "--note", "x" * 2_001], "use at most 2,000"),
        (["open", "Mail", "--note", "x"], "'Mail' is not a valid breaker name; use 1 to 63"),
        (["show", "Mail"], "'Mail' is not a valid breaker name; use 1 to 63"),
        (["open", "mial", "--note", "x"], "there is no breaker mial; `fairlane breakers` lists all"),
        (["close", "mial", "--note", "x"], "there is no breaker mial; `fairlane breakers` lists all"),
        (["reset", "mial"], "there is no breaker mial; `fairlane breakers` lists all"),
        (["open", "mail", "--note", "x", "--tenant", "a b"], "'a b' is not a valid tenant name"),
        (["open", "mail", "--note", "x", "--for", "soon"], "'soon' is not a duration"),
        (["open", "mail", "--note", "x", "--until", "soon"], "'soon' is not a time"),
        (
            ["open", "mail", "--note", "x", "--for", "1h", "--until", "2030-01-01T00:00Z"],
            "give either --until or --for, not both",
        ),
    ],
    ids=lambda words: " ".join(words)[:40] if isinstance(words, list) else "",
)
def test_bad_input_is_a_usage_error(store: Shell, words: list[str], message: str) -> None:
    """Exit code 2; nothing is set, and nothing is in the audit."""
    store.in_store(outage)
    before = store.run("breakers", "--json").out
    ran = store.run("breakers", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in re.sub(r"\s+", " ", ran.err)
    assert store.run("breakers", "--json").out == before
    assert store.run("audit", "--json").objects == []


def test_an_error_is_one_object_for_programs(store: Shell) -> None:
    """On the error output."""
    ran = store.run("breakers", "reset", "mail", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert (ran.told["error"], ran.told["exit"]) == ("BadParameter", 2)
    assert "there is no breaker mail" in ran.told["message"]
