"""`fairlane schedules`: look at schedules and change them, for people and for programs."""

from __future__ import annotations

import json

import pytest

from fairlane.store.contract.registry import RegisterRequest, TaskRecord, WorkerRecord
from tests.cli.shell import Shell
from tests.contract.world import ALL, World


async def publish(world: World) -> None:
    """Let a worker publish a task with one argument."""
    schema = b'{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":false}'
    task = TaskRecord(name="mail.send", queue="mail", schema=schema)
    record = WorkerRecord(id="w1", host="h", pid=1, version="1", queues=("mail",), slots=1, tasks=(task,))
    await world.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=4_000_000))


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A store with a published task."""
    shell.output_of("migrate")
    shell.in_store(publish)
    return shell


def test_a_schedule_is_said_in_words_before_it_is_added(filled: Shell) -> None:
    """With its next runs; a dry run saves nothing."""
    given = ("nightly", "mail.send", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    dry = filled.output_of("schedules", "add", *given, "--dry-run")
    assert dry.startswith("At 02:30 every day, Berlin.\n  ")
    assert "02:30:00 Europe/Berlin" in dry
    assert filled.output_of("schedules") == "There is no such schedule.\n"
    ran = filled.run("schedules", "add", *given, "--args", '{"to": "ann"}', "--note", "asked for")
    assert (ran.code, ran.out) == (0, "nightly was added.\n")
    assert ran.err.startswith("At 02:30 every day, Berlin.\n")
    listed = filled.output_of("schedules", "list")
    assert "nightly" in listed
    assert "At 02:30 every day, Berlin" in listed
    shown = filled.output_of("schedules", "show", "nightly")
    for said in ("Europe/Berlin", "30 2 * * *", "mail.send", "system", "added, by", "asked for"):
        assert said in shown
    one = json.loads(filled.output_of("schedules", "show", "nightly", "--json"))
    assert (one["cron"], one["timezone"], one["task"]) == ("30 2 * * *", "Europe/Berlin", "mail.send")
    (listed_json,) = map(json.loads, filled.output_of("schedules", "--json").splitlines())
    assert listed_json == one
    assert len(filled.output_of("schedules", "next", "nightly", "-n", "3").splitlines()) == 4


def test_everything_wrong_is_said_at_once(filled: Shell) -> None:
    """For people in lines, for programs with the fields."""
    given = ("bad", "mail.send", "--cron", "0 25 * * *", "--timezone", "Nowhere", "--args", '{"from": "x"}')
    ran = filled.run("schedules", "add", *given)
    assert ran.code == 1
    for field in ("cron: ", "timezone: ", "arguments.from: "):
        assert field in ran.err
    answer = json.loads(filled.run("schedules", "add", *given, "--json").err)
    assert {"cron", "timezone", "arguments.from"} <= {one["field"] for one in answer["problems"]}
    assert filled.run("schedules", "add", "x", "mail.sned", "--every", "5m").code in {1, 3}
    assert filled.run("schedules", "show", "bad").code == 3
    assert filled.run("schedules", "show", "No Name").code == 2
    assert filled.run("schedules", "preview", "--every", "0.1s").code == 1


def test_a_schedule_is_steered(filled: Shell) -> None:
    """Paused, resumed, run, edited, backfilled, removed; the audit has every reason."""
    hourly = ("tick", "mail.send", "--every", "1h", "--tenant", "acme", "--note", "n1")
    assert filled.run("schedules", "add", *hourly).code == 0
    assert (
        filled.output_of("schedules", "pause", "tick", "--note", "n2", "--for", "2h") == "tick is paused.\n"
    )
    assert "paused" in filled.output_of("schedules")
    assert filled.output_of("schedules", "list", "--active") == "There is no such schedule.\n"
    assert filled.output_of("schedules", "resume", "tick", "--note", "n3") == "tick goes on.\n"
    job = filled.output_of("schedules", "run", "tick", "--note", "n4").strip()
    history = filled.output_of("schedules", "history", "tick")
    assert job in history
    assert "run_now" in history
    (slot,) = map(json.loads, filled.output_of("schedules", "history", "tick", "--json").splitlines())
    assert (slot["job"], slot["state"]) == (job, "enqueued")
    assert f"tick, slot {slot['at'][:10]}" in filled.output_of("jobs", "show", job)
    assert "Schedule: tick, slot" in filled.output_of("explain", job)
    edited = filled.run("schedules", "edit", "tick", "--every", "5m", "--overlap", "skip", "--note", "n5")
    assert edited.err.startswith("Every 5 minutes.")
    assert edited.out == "tick was changed.\n"
    assert filled.run("schedules", "edit", "tick", "--note", "n").code == 2
    unset = ("schedules", "edit", "tick", "--unset", "overlap", "--note", "n6", "--for", "1d", "--json")
    assert json.loads(filled.output_of(*unset))["overlap"] == "allow"
    assert filled.run("schedules", "reset", "tick").code == 2
    when = ("2027-01-15T06:00:00Z", "2027-01-15T06:20:00Z")
    taken = filled.output_of("schedules", "backfill", "tick", *when, "--note", "n7", "--json")
    assert json.loads(taken)["schedule"] == "tick"
    assert filled.run("schedules", "backfill", "tick", *when[::-1], "--note", "n7").code == 2
    assert "next run(s) moved" in filled.output_of("schedules", "recompute")
    assert filled.run("schedules", "remove", "tick").code == 2
    assert filled.output_of("schedules", "remove", "tick", "--yes", "--note", "n8") == "tick was removed.\n"
    audit = filled.output_of("audit", "list", "--json")
    notes = {
        one["note"] for one in map(json.loads, audit.splitlines()) if one["kind"].startswith("schedules.")
    }
    assert {"n1", "n2", "n3", "n4", "n5", "n6", "n8"} <= notes


def test_a_preview_saves_nothing(filled: Shell) -> None:
    """With the runs in the zone and in UTC."""
    text = filled.output_of(
        "schedules", "preview", "--cron", "0 9 * * MON#1", "--timezone", "America/New_York"
    )
    assert text.startswith("At 09:00 on ")
    assert text.count("America/New_York") == 5
    seen = json.loads(filled.output_of("schedules", "preview", "--every", "15m", "-n", "2", "--json"))
    assert (seen["expression"], len(seen["runs"])) == ("every 15m", 2)


def test_a_schedule_of_many_tenants_is_left_to_the_duty(filled: Shell) -> None:
    """Which makes its jobs in its next pass."""
    given = ("all", "mail.send", "--every", "1h", "--for-tenants", "plan=pro")
    assert filled.run("schedules", "add", *given).code == 0
    assert "tenants with plan=pro" in filled.output_of("schedules")
    assert "by the process that does the duties" in filled.output_of("schedules", "run", "all")
    assert "0 jobs" in filled.output_of("schedules", "history", "all")
