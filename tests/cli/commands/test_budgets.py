"""`fairlane budgets`: what is spent of each budget, by whom, and the ceiling at run time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fairlane.model.policy.overrides import SubjectKind
from tests.cli.shell import Shell
from tests.contract.world import World

CENTS = 10_000
"""Millionths of the currency."""


@pytest.fixture(autouse=True)
def _who(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is ops@desk, whoever runs the tests."""
    monkeypatch.setattr("fairlane.app.acting.getuser", lambda: "ops")
    monkeypatch.setattr("fairlane.app.acting.host", lambda: "desk")


async def spend(world: World, tenant: str, task: str, cents: int, created_by: str | None = None) -> None:
    """Run a job that spends so much."""
    await world.enqueue(tenant, task=task, created_by=created_by)
    await world.settle(await world.claim_one(), spent=cents * CENTS)


async def spending(world: World) -> None:
    """Let two tenants spend 40 of 100 in twenty minutes; a third job runs. A second budget is spent."""
    await world.put_budget(
        "ai", "tag", ceiling=100_00 * CENTS, estimate=20_00 * CENTS, on_spent="fail", alert_at=(80, 100)
    )
    await world.put_budget(
        "maps", "route", ceiling=5_00 * CENTS, per_tenant=True, per="month", currency="EUR"
    )
    world.advance(600)
    await spend(world, "acme", "tag", 30_00, created_by="ann")
    world.advance(600)
    await spend(world, "globex", "tag", 10_00)
    await spend(world, "acme", "route", 5_00)
    await world.enqueue("acme", task="tag")
    await world.claim_one()


def shown(store: Shell, *words: str) -> dict[str, Any]:
    """Return the one object that a command prints for programs."""
    (told,) = store.run("budgets", *words, "--json").objects
    return told


def override(store: Shell, name: str = "ai") -> Any:
    """Return what is set in the store, if anything."""
    return store.in_store(lambda world: world.view(SubjectKind.BUDGET, name)).override


# ── what is spent ────────────────────────────────────────────────────────────


def test_they_are_listed(store: Shell) -> None:
    """The whole table; `list` may be left out; before there is one, a sentence."""
    assert store.output_of("budgets") == "No budget is known yet.\n"
    store.in_store(spending)
    table = (
        "BUDGET  CEILING     PER    SPENT        RUNS OUT                              ON SPENT  SET BY\n"
        "ai      100.00 USD  day    40.00 (40%)  2027-01-15 20:50:00 UTC (in 12h 30m)  fail      -\n"
        "maps    5.00 EUR    month  5.00 (100%)  spent                                 park      -\n"
    )
    assert store.output_of("budgets") == store.output_of("budgets", "list") == table


def test_one_of_which_nothing_was_spent_is_listed(store: Shell) -> None:
    """Without an account."""
    store.in_store(lambda world: world.put_budget("ai", "tag", ceiling=CENTS))
    assert store.output_of("budgets").splitlines()[1].split() == [
        *("ai", "0.01", "USD", "day", "0.00", "-", "park", "-")
    ]


def test_one_is_shown(store: Shell) -> None:
    """The whole record."""
    store.in_store(spending)
    assert store.output_of("budgets", "show", "ai") == (
        "budget       ai\n"
        "ceiling      100.00 USD\n"
        "per          day (UTC)\n"
        "estimate     20.00\n"
        "on spent     fail\n"
        "spent        40.00 (40%)\n"
        "reserved     20.00\n"
        "runs out     2027-01-15 20:50:00 UTC (in 12h 30m)\n"
        "period ends  2027-01-16 00:00:00 UTC (in 15h 40m)\n"
    )
    assert shown(store, "show", "ai") == {
        "name": "ai",
        "ceiling": "100.00",
        "currency": "USD",
        "per": "day",
        "timezone": "UTC",
        "estimate": "20.00",
        "on_spent": "fail",
        "per_tenant": False,
        "alert_at": [0.8, 1.0],
        "accounts": [
            {
                "tenant": None,
                "spent": "40.00",
                "reserved": "20.00",
                "period_start": "2027-01-15T00:00:00.000000Z",
                "period_end": "2027-01-16T00:00:00.000000Z",
                "runs_out_at": "2027-01-15T20:50:00.000000Z",
                "is_spent": False,
            }
        ],
        "override": None,
    }


def test_one_of_each_tenant_is_shown_with_their_accounts(store: Shell) -> None:
    """By name."""
    store.in_store(spending)
    store.in_store(lambda world: spend(world, "globex", "route", 1_25))
    assert store.output_of("budgets", "show", "maps") == (
        "budget              maps\n"
        "ceiling             5.00 EUR\n"
        "per                 month (UTC), each tenant\n"
        "estimate            0.00\n"
        "on spent            park\n"
        "spent by acme       5.00 (100%)\n"
        "reserved by acme    0.00\n"
        "runs out by acme    2027-01-15 08:20:00 UTC (now)\n"
        "period ends         2027-02-01 00:00:00 UTC (in 16d 15h)\n"
        "spent by globex     1.25 (25%)\n"
        "reserved by globex  0.00\n"
    )
    told = shown(store, "show", "maps")
    assert [(one["tenant"], one["spent"], one["is_spent"]) for one in told["accounts"]] == [
        ("acme", "5.00", True),
        ("globex", "1.25", False),
    ]


def test_an_unknown_name_has_no_ceiling(store: Shell) -> None:
    """Nothing was spent of it, and it is in no list."""
    assert "ceiling   none\n" in store.output_of("budgets", "show", "nosuch")
    assert (shown(store, "show", "nosuch")["ceiling"], shown(store, "show", "nosuch")["accounts"]) == (
        None,
        [],
    )
    assert store.output_of("budgets", "spend", "nosuch") == "Nothing was spent.\n"
    assert store.output_of("budgets") == "No budget is known yet.\n"


# ── who has spent it ─────────────────────────────────────────────────────────


def test_who_has_spent_what(store: Shell) -> None:
    """By task, tenant and who created the jobs; most first."""
    store.in_store(spending)
    assert store.output_of("budgets", "spend", "ai") == (
        "BY       NAME    SPENT USD\n"
        "task     tag     40.00\n"
        "tenant   acme    30.00\n"
        "tenant   globex  10.00\n"
        "creator  ann     30.00\n"
        "creator  -       10.00\n"
    )
    told = store.run("budgets", "spend", "ai", "--by", "creator", "--json").objects
    day = {"currency": "USD", "period_start": "2027-01-15T00:00:00.000000Z"}
    assert told == [
        {"by": "creator", "name": "ann", "spent": "30.00", **day},
        {"by": "creator", "name": None, "spent": "10.00", **day},
    ]


def test_what_was_spent_in_an_earlier_period(store: Shell) -> None:
    """The last one without `--period`; one of which nothing is known is empty."""
    store.in_store(spending)
    store.clock.advance(86_400)
    store.in_store(lambda world: spend(world, "umbrella", "tag", 7))
    assert store.output_of("budgets", "spend", "ai", "--by", "tenant").splitlines()[1:] == [
        "tenant  umbrella  0.07"
    ]
    before = store.output_of("budgets", "spend", "ai", "--by", "task", "--period", "2027-01-15T00:00Z")
    assert before == "BY    NAME  SPENT USD\ntask  tag   40.00\n"
    nothing = store.output_of("budgets", "spend", "ai", "--period", "2027-01-14T00:00Z")
    assert nothing == "Nothing was spent.\n"


# ── the ceiling at run time ──────────────────────────────────────────────────


def test_a_ceiling_is_set_and_reset(store: Shell) -> None:
    """Who, why and until when are shown; the declared one holds again."""
    store.in_store(spending)
    end = "2027-01-15 10:20:00 UTC"
    text = store.output_of("budgets", "set", "ai", "40.5", "--note", "enough", "--for", "2h")
    assert text == store.output_of("budgets", "show", "ai")
    assert "ceiling      40.50 USD\n" in text
    assert "spent        40.00 (99%)\n" in text
    assert text.endswith(f"set          ceiling, by ops@desk now: enough, until {end} (in 2h)\n")
    row = store.output_of("budgets").splitlines()[1]
    assert re.split(r"\s{2,}", row) == ["ai", "40.50 USD", "day", "40.00 (99%)", "spent", "fail", "ops@desk"]
    after = store.output_of("budgets", "reset", "ai", "--reason", "more came")
    assert "ceiling      100.00 USD\n" in after
    assert "set " not in after
    assert override(store) is None


def test_what_is_set_ends_by_itself(store: Shell) -> None:
    """At the given time, by the store's clock."""
    store.in_store(spending)
    told = shown(store, "set", "ai", "0", "--reason", "stop", "--until", "2027-01-15T08:30:00Z")
    assert told["ceiling"] == "0.00"
    assert told["override"] == {
        "values": {"ceiling": 0},
        "who": "ops@desk",
        "note": "stop",
        "since": "2027-01-15T08:20:00.000000Z",
        "until": "2027-01-15T08:30:00.000000Z",
    }
    store.clock.advance(600)
    assert shown(store, "show", "ai")["ceiling"] == "100.00"


def test_it_counts_at_the_next_claim(store: Shell) -> None:
    """A ceiling of 0 lets no job start; a reset lets it."""
    store.in_store(lambda world: world.put_budget("ai", "tag", ceiling=CENTS))
    store.in_store(lambda world: world.enqueue(task="tag"))
    store.output_of("budgets", "set", "ai", "0")
    assert store.in_store(lambda world: world.claim(9)) == []
    store.output_of("budgets", "reset", "ai")
    assert len(store.in_store(lambda world: world.claim(9))) == 1


def test_what_is_set_is_in_the_audit(store: Shell) -> None:
    """Who, from where, why."""
    store.in_store(spending)
    store.output_of("budgets", "set", "ai", "50", "--note", "half")
    store.output_of("budgets", "reset", "ai", "--note", "whole")
    found = store.run("audit", "--json").objects
    assert [(one["kind"], one["subject"], one["actor"], one["origin"], one["note"]) for one in found] == [
        ("budgets.reset", "budget ai", "ops@desk", "cli", "whole"),
        ("budgets.set", "budget ai", "ops@desk", "cli", "half"),
    ]


def test_another_end_than_before_is_a_usage_error(store: Shell) -> None:
    """It says what to do; what was set stays."""
    store.in_store(spending)
    store.output_of("budgets", "set", "ai", "50", "--for", "2h")
    before = override(store)
    ran = store.run("budgets", "set", "ai", "60", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "give the same --until, or reset it first" in ran.told["message"]
    assert override(store) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "ai"], "Missing argument 'CEILING'"),
        (["set", "ai", "much"], "'much' is no amount; write it as 0.02"),
        (["set", "ai", "--", "-1"], "-1 is negative"),
        (["set", "ai", "nan"], "NaN is no amount; use a finite number"),
        (["set", "ai", "1.1234567"], "1.1234567 has more than 6 decimals"),
        (["set", "ai", "1e30"], "is too large"),
        (["set", "AI", "5"], "'AI' is not a valid budget name; use 1 to 63"),
        (["show", "AI"], "'AI' is not a valid budget name; use 1 to 63"),
        (["reset", "AI"], "'AI' is not a valid budget name; use 1 to 63"),
        (["spend", "AI"], "'AI' is not a valid budget name; use 1 to 63"),
        (["set", "ai", "5", "--note", "x" * 2_001], "use at most 2,000"),
        (["set", "ai", "5", "--for", "soon"], "'soon' is not a duration"),
        (
            ["set", "ai", "5", "--for", "1h", "--until", "2030-01-01T00:00Z"],
            "give either --until or --for, not both",
        ),
        (["spend", "ai", "--by", "moon"], "'moon' is not one of 'task', 'tenant', 'creator'"),
        (["spend", "ai", "--period", "often"], "'often' is not a time"),
    ],
    ids=lambda words: " ".join(words)[:40] if isinstance(words, list) else "",
)
def test_bad_input_is_a_usage_error(store: Shell, words: list[str], message: str) -> None:
    """Exit code 2; nothing is set, and nothing is in the audit."""
    store.in_store(spending)
    ran = store.run("budgets", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in re.sub(r"\s+", " ", ran.err)
    assert override(store) is None
    assert store.run("audit", "--json").objects == []
