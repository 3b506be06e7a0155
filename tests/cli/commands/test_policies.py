"""`fairlane queues`, `tenants`, `limits`, `pause`, `close`, `resume` and `drain`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind, TaskRules, TenantRules
from tests.cli.shell import Shell
from tests.contract.world import World, payload


@pytest.fixture(autouse=True)
def _who(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is ops@desk, whoever runs the tests."""
    monkeypatch.setattr("fairlane.app.acting.getuser", lambda: "ops")
    monkeypatch.setattr("fairlane.app.acting.host", lambda: "desk")


async def busy(world: World) -> None:
    """Jobs of two tenants in two queues, one of them running, one dead."""
    await world.declare(
        SubjectKind.QUEUE, "bulk", QueueRules(limits=Limits(waiting=500, running=4), max_waiting=1000)
    )
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(weight=2.5, labels={"plan": "pro"}))
    await world.bring_to(State.DEAD)
    await world.enqueue_many(3, queue="bulk")
    await world.enqueue("globex", delay=MINUTE)
    await world.claim_one("bulk")


def test_queues_are_listed_with_their_jobs(store: Shell) -> None:
    """The whole table."""
    store.in_store(busy)
    store.in_store(lambda world: world.pause(SubjectKind.QUEUE, "bulk"))
    assert store.output_of("queues", "list") == (
        "QUEUE    DELAYED  READY  RUNNING  SUCCEEDED  DEAD  CANCELLED  HELD\n"
        "bulk           0      2        1          0     0          0  paused\n"
        "default        1      0        0          0     1          0  -\n"
    )


def test_a_queue_is_shown_with_its_limits_and_who_changed_them(store: Shell) -> None:
    """What holds, what was set above it, and the pause."""
    store.in_store(busy)
    store.output_of("limits", "queue", "bulk", "--max-waiting", "50", "--note", "import", "--for", "2h")
    store.output_of("pause", "queue", "bulk", "--note", "wrong data")
    store.clock.advance(60)
    assert store.output_of("queues", "show", "bulk") == (
        "queue        bulk\ndelayed      0\nready        2\nrunning      1\nsucceeded    0\ndead         0\n"
        "cancelled    0\n"
        "each tenant  500 waiting (warn), 4 running\n"
        "max waiting  50\n"
        "cost         jobs\n"
        "paused       by ops@desk 1m ago: wrong data\n"
        "set          max_waiting, by ops@desk 1m ago: import, until 2027-01-15 10:00:00 UTC (in 1h 59m)\n"
    )
    (told,) = store.run("queues", "show", "bulk", "--json").objects
    assert (told["counts"]["ready"], told["limits"]["waiting"], told["max_waiting"]) == (2, 500, 50)
    assert (told["paused"]["reason"], told["closed"], told["override"]["note"]) == (
        "wrong data",
        None,
        "import",
    )


def test_tenants_are_listed_and_narrowed_by_label(store: Shell) -> None:
    """The whole table, then one page of it."""
    store.in_store(busy)
    assert store.output_of("tenants", "list") == (
        "TENANT  WEIGHT  DELAYED  READY  RUNNING  DEAD  HELD\n"
        "acme    2.5           0      2        1     1  -\n"
        "globex  1             1      0        0     0  -\n"
    )
    assert [one["name"] for one in store.run("tenants", "list", "--label", "plan=pro", "--json").objects] == [
        "acme"
    ]
    first = store.run("tenants", "list", "--limit", "1", "--json")
    assert first.err == "There may be more: continue with --cursor acme\n"
    rest = store.run("tenants", "list", "--cursor", "acme", "--json")
    assert [one["name"] for one in rest.objects] == ["globex"]


def test_a_tenant_is_shown_with_its_limits_and_jobs_by_queue(store: Shell) -> None:
    """Its limits in each queue, wherever they come from."""
    store.in_store(busy)
    assert store.output_of("tenants", "show", "acme") == (
        "tenant  acme\n"
        "weight  2.5\n"
        "labels  plan=pro\n"
        "limits  bulk: 500 waiting (warn), 4 running\n"
        "        default: no limit\n"
        "jobs    bulk: 2 ready, 1 running\n"
        "        default: 1 dead\n"
    )


def test_purging_a_tenant_asks_first_and_cancels_what_waits(store: Shell) -> None:
    """In one queue or in all; what runs goes on."""
    store.in_store(busy)
    refused = store.run("tenants", "purge", "acme", "--note", "left us")
    assert (refused.code, refused.out) == (2, "")
    answer = store.output_of("tenants", "purge", "acme", "--queue", "bulk", "--note", "left us", "--yes")
    assert answer == "2 job(s) of tenant acme in queue bulk cancelled.\n"
    counts = store.in_store(lambda world: world.counts())
    assert (counts["acme", "bulk", State.CANCELLED], counts["acme", "bulk", State.RUNNING]) == (2, 1)


def test_forgetting_a_tenant_erases_what_its_jobs_hold(store: Shell) -> None:
    """For good, so it asks first."""
    job = store.in_store(lambda world: world.enqueue(payload=payload(name="Ada")))
    assert store.run("tenants", "forget", "acme", "--note", "asked to").code == 2
    assert (
        store.output_of("tenants", "forget", "acme", "--note", "asked to", "--yes")
        == "1 job(s) of tenant acme erased.\n"
    )
    assert b"Ada" not in store.in_store(lambda world: world.get(job.id)).payload


# ── pause, close, resume ─────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "name"), [("queue", "default"), ("tenant", "acme"), ("task", "noop")])
def test_a_pause_holds_jobs_until_it_is_resumed(store: Shell, kind: str, name: str) -> None:
    """Who and why are stored with it, and `explain` shows them."""
    job = store.in_store(lambda world: world.enqueue())
    answer = store.output_of("pause", kind, name, "--note", "wrong data")
    assert answer == f"{kind} {name} is paused, until `fairlane resume {kind} {name}`.\n"
    shown = store.output_of("explain", str(job.id))
    assert f"Reason: paused ({kind} {name} paused by ops@desk: wrong data).\n" in shown
    assert store.output_of("resume", kind, name) == f"{kind} {name} is no longer paused.\n"
    assert "Reason: no_worker" in store.output_of("explain", str(job.id))
    assert store.output_of("resume", kind, name) == f"{kind} {name} was neither paused nor closed.\n"


@pytest.mark.parametrize(
    "end", [["--for", "90s"], ["--until", "2027-01-15T08:01:30Z"], ["--until", "2027-01-15T09:01:30+01:00"]]
)
def test_a_pause_may_end_by_itself(store: Shell, end: list[str]) -> None:
    """After a time by the store's clock, or at an instant."""
    answer = store.output_of("pause", "tenant", "acme", "--note", "x", *end)
    assert answer == "tenant acme is paused, until 2027-01-15 08:01:30 UTC (in 1m 30s).\n"
    (told,) = store.run("pause", "tenant", "acme", "--note", "x", *end, "--json").objects
    assert (told["answer"], told["until"], told["who"]) == (
        "paused",
        "2027-01-15T08:01:30.000000Z",
        "ops@desk",
    )
    store.clock.advance(90)
    assert store.in_store(lambda world: world.view(SubjectKind.TENANT, "acme")).paused is None


def test_a_close_refuses_new_jobs_until_it_is_resumed(store: Shell) -> None:
    """Both at once are ended by one resume."""
    store.output_of("close", "queue", "bulk", "--reason", "moving")
    store.output_of("pause", "queue", "bulk", "--note", "moving")
    view = store.in_store(lambda world: world.view(SubjectKind.QUEUE, "bulk"))
    assert view.closed is not None
    assert (view.closed.who, view.closed.reason) == ("ops@desk", "moving")
    assert store.output_of("resume", "queue", "bulk") == "queue bulk is no longer paused and closed.\n"
    after = store.in_store(lambda world: world.view(SubjectKind.QUEUE, "bulk"))
    assert (after.paused, after.closed) == (None, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pause", "queue", "bulk"], "Missing option '--note'"),
        (["pause", "gate", "door", "--note", "x"], "'gate' is not one of 'queue', 'tenant', 'task'"),
        (["pause", "queue", "Bulk", "--note", "x"], "'Bulk' is not a valid queue name; use 1 to 63"),
        (
            ["pause", "queue", "b", "--note", "x", "--for", "1h", "--until", "2030-01-01T00:00Z"],
            "not both",
        ),
        (["drain", "bulk"], "Missing option '--note'"),
    ],
)
def test_a_hold_that_says_too_little_is_a_usage_error(store: Shell, words: list[str], message: str) -> None:
    """Exit code 2; nothing is held."""
    ran = store.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in re.sub(r"\s+", " ", ran.err)


def test_an_empty_queue_is_drained_at_once_and_stays_paused(store: Shell) -> None:
    """The remark says what Ctrl-C would do."""
    ran = store.run("drain", "bulk", "--note", "new server")
    assert ran == (
        0,
        "queue bulk is drained; continue with `fairlane resume queue bulk`.\n",
        "Waiting for queue bulk; Ctrl-C ends the wait, not the pause.\n",
    )
    assert store.in_store(lambda world: world.view(SubjectKind.QUEUE, "bulk")).paused is not None


def test_a_queue_that_does_not_come_to_rest_is_a_refusal(store: Shell) -> None:
    """Exit code 1 after the timeout; by pause what runs counts, by close what is ready as well."""
    store.in_store(busy)
    store.in_store(lambda world: world.enqueue())
    assert store.run("drain", "bulk", "--note", "x", "--timeout", "0").code == 1
    assert store.run("drain", "default", "--note", "x", "--timeout", "0").code == 0
    assert store.run("drain", "default", "--note", "x", "--by", "close", "--timeout", "0").code == 1


# ── limits ───────────────────────────────────────────────────────────────────


def effective(store: Shell, kind: SubjectKind, name: str) -> Any:
    """Read what holds."""
    return store.in_store(lambda world: world.view(kind, name)).effective


def test_limits_are_shown_with_what_is_declared_and_what_is_set(store: Shell) -> None:
    """Of a queue, whole."""
    store.in_store(busy)
    assert store.output_of("limits", "queue", "bulk") == (
        "queue     bulk\n"
        "in force  each tenant: 500 waiting (warn), 4 running\n"
        "          rate: none\n"
        "          max waiting: 1000\n"
        "          cost: jobs\n"
    )
    assert store.output_of(
        "limits",
        "queue",
        "bulk",
        "--running",
        "2",
        "--rate",
        "50/minute+5",
        "--note",
        "slow down",
        "--for",
        "1h",
    ) == (
        "queue     bulk\n"
        "in force  each tenant: 500 waiting (warn), 2 running\n"
        "          rate: 50/minute, burst 5\n"
        "          max waiting: 1000\n"
        "          cost: jobs\n"
        "set       by ops@desk now: slow down, until 2027-01-15 09:00:00 UTC (in 1h)\n"
        "declared  each tenant: 500 waiting (warn), 4 running\n"
        "          rate: none\n"
        "          max waiting: 1000\n"
        "          cost: jobs\n"
    )


def test_what_a_slow_command_has_set_is_not_of_the_future(
    store: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was set after the command had asked for the time."""
    monkeypatch.setattr(store.clock, "now", lambda: store.clock.advance(2))
    assert "by ops@desk now: launch" in store.output_of(
        "limits", "tenant", "acme", "--weight", "3", "--note", "launch"
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--waiting", "7"], QueueRules(limits=Limits(waiting=7, running=4), max_waiting=1000)),
        (["--waiting", "none"], QueueRules(limits=Limits(running=4), max_waiting=1000)),
        (
            ["--on-full", "reject"],
            QueueRules(limits=Limits(waiting=500, on_full="reject", running=4), max_waiting=1000),
        ),
        (["--running", "0"], QueueRules(limits=Limits(waiting=500, running=0), max_waiting=1000)),
        (
            ["--tenant-rate", "10/second+20"],
            QueueRules(limits=Limits(waiting=500, running=4, rate=Rate(10, "second", 20)), max_waiting=1000),
        ),
        (
            ["--rate", "3/hour"],
            QueueRules(limits=Limits(waiting=500, running=4), rate=Rate(3, "hour"), max_waiting=1000),
        ),
        (["--max-waiting", "none"], QueueRules(limits=Limits(waiting=500, running=4))),
    ],
)
def test_each_value_of_a_queue_is_set_alone(store: Shell, words: list[str], wanted: QueueRules) -> None:
    """What is not given stays; a reset brings all of it back."""
    store.in_store(busy)
    declared = effective(store, SubjectKind.QUEUE, "bulk")
    store.output_of("limits", "queue", "bulk", *words)
    assert effective(store, SubjectKind.QUEUE, "bulk") == wanted
    store.output_of("limits", "queue", "bulk", "--reset", "--note", "enough")
    assert effective(store, SubjectKind.QUEUE, "bulk") == declared


def test_limits_of_a_tenant_start_from_what_holds_in_the_queue(store: Shell) -> None:
    """One value is changed; the queue's others stay in force, and other queues are not touched."""
    store.in_store(busy)
    store.output_of("limits", "tenant", "acme", "--queue", "bulk", "--running", "8", "--weight", "5")
    rules = effective(store, SubjectKind.TENANT, "acme")
    assert (rules.weight, rules.limits) == (5.0, {"bulk": Limits(waiting=500, running=8)})
    store.output_of("limits", "tenant", "acme", "--waiting", "9")
    rules = effective(store, SubjectKind.TENANT, "acme")
    assert rules.limits == {"bulk": Limits(waiting=500, running=8), "*": Limits(waiting=9)}
    assert store.output_of("limits", "tenant", "acme").startswith(
        "tenant    acme\nin force  weight 5\n          *: 9 waiting (warn)\n"
        "          bulk: 500 waiting (warn), 8 running\n"
    )
    store.output_of("limits", "tenant", "acme", "--queue", "bulk", "--reset")
    rules = effective(store, SubjectKind.TENANT, "acme")
    assert (rules.weight, rules.limits) == (5.0, {"*": Limits(waiting=9)})


def test_a_gate_and_a_task_are_limited_too(store: Shell) -> None:
    """How many at once, and how often."""
    store.output_of("limits", "gate", "door", "--limit", "3", "--rate", "1/second")
    assert effective(store, SubjectKind.GATE, "door") == GateRules(3, Rate(1, "second"))
    store.output_of("limits", "task", "noop", "--rate", "5/minute")
    assert effective(store, SubjectKind.TASK, "noop") == TaskRules(Rate(5, "minute"))
    (told,) = store.run("limits", "task", "noop", "--json").objects
    assert told["override"]["values"] == {"rate": {"limit": 5, "per": "minute", "burst": 1}}
    assert told["override"]["who"] == "ops@desk"


def test_what_is_set_may_end_by_itself(store: Shell) -> None:
    """By the store's clock."""
    store.output_of("limits", "gate", "door", "--limit", "3", "--for", "10s")
    store.clock.advance(9.999_999)
    assert effective(store, SubjectKind.GATE, "door") == GateRules(3)
    store.clock.advance(1 / SECOND)
    assert effective(store, SubjectKind.GATE, "door") == GateRules()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gate", "door", "--weight", "2"], "a gate has no --weight"),
        (["task", "noop", "--limit", "2"], "a task has no --limit"),
        (["queue", "bulk", "--weight", "2"], "a queue has no --weight"),
        (["tenant", "acme", "--max-waiting", "2"], "a tenant has no --max-waiting"),
        (["tenant", "acme", "--weight", "0"], "weight"),
        (["tenant", "acme", "--queue", "bulk", "--weight", "2"], "queue is given without limits"),
        (
            ["queue", "bulk", "--running", "-1"],
            "'-1' is not a whole number; give one of up to 9 digits, or `none`",
        ),
        (["queue", "bulk", "--rate", "often"], "'often' is not a rate; write it as 50/minute"),
        (["queue", "bulk", "--rate", "5/week"], "per of a Rate must be one of second, minute, hour, day"),
        (["queue", "bulk", "--reset", "--running", "1"], "--reset removes the whole override"),
    ],
)
def test_a_limit_that_means_nothing_is_a_usage_error(store: Shell, words: list[str], message: str) -> None:
    """Exit code 2; nothing is set."""
    ran = store.run("limits", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in re.sub(r"\s+", " ", ran.err)
    assert store.in_store(lambda world: world.view(SubjectKind(words[0]), words[1])).override is None


def test_an_empty_queue_is_removed(store: Shell) -> None:
    """A queue with unfinished jobs is not, and the error says how many there are."""
    store.in_store(busy)
    full = store.run("queues", "remove", "bulk", "--note", "moved")
    assert full.code == 1
    assert "3 job(s) wait or run in queue bulk" in full.err
    store.output_of("pause", "queue", "old", "--note", "moving")
    assert store.output_of("queues", "remove", "old", "--note", "moved") == "Removed queue old.\n"
    assert "old" not in store.output_of("queues")
    assert store.run("queues", "remove", "old").code == 2  # without a note


def test_rates_show_when_the_next_start_is(store: Shell) -> None:
    """Of the queue, and of the tenants that have jobs in it."""
    store.in_store(
        lambda world: world.declare(SubjectKind.QUEUE, "bulk", QueueRules(rate=Rate(1, "minute", burst=2)))
    )
    store.in_store(busy_with_a_rate)
    assert store.output_of("queues", "rates", "bulk") == (
        "OF          RATE               ALLOWED NOW  NEXT START                       READY\n"
        "queue bulk  1/minute, burst 2            0  2027-01-15 08:01:00 UTC (in 1m)      1\n"
    )
    (told,) = store.run("queues", "rates", "bulk", "--json").objects
    assert (told["kind"], told["name"], told["allowed"]) == ("queue", "bulk", 0)
    assert store.output_of("queues", "rates", "default") == "Nothing in queue default has a rate.\n"


async def busy_with_a_rate(world: World) -> None:
    """Use up a rate."""
    await world.enqueue_many(3, queue="bulk")
    await world.claim(3, "bulk")
