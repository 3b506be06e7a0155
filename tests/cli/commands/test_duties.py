"""`fairlane duties`: who does the duties, how each went, and a pass by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.model.duty_report import DUTIES, DutyReport, DutyReports
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import LeadRequest
from tests.cli.shell import Shell
from tests.contract.world import ALL, World


async def lead(world: World) -> None:
    """Let a worker lead, and report one duty that was done and one that fails."""
    now = world.now
    done = DutyReport(
        name="prune", worker="w1", began_at=now, took=1_500, late=0, next_at=now, did="2 succeeded removed"
    )
    failing = DutyReport(
        name="clean", worker="w1", began_at=now, took=0, late=0, next_at=now, failures=2, error="KeyError: 7"
    )
    request = LeadRequest(
        scope=ALL, name="duties", worker="w1", lease=60 * SECOND, reports=DutyReports(now, (done, failing))
    )
    await world.store.registry.lead(request)


def test_duties_are_listed_with_who_does_them(shell: Shell) -> None:
    """And which of them fail, and by what."""
    shell.output_of("migrate")
    nobody = shell.run("duties")
    assert (nobody.code, nobody.err) == (
        0,
        "Nobody does them: start a worker, or `fairlane scheduler`.\n",
    )
    shell.in_store(lead)
    ran = shell.run("duties", "list")
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert set(lines) == {"DUTY", *DUTIES}
    assert "0.002 s" in lines["prune"] or "0.001 s" in lines["prune"]
    assert "2 succeeded removed" in lines["prune"]
    assert ran.err == "Done by w1.\nclean failed 2 times in a row: KeyError: 7\n"


def test_duties_are_listed_as_json(shell: Shell) -> None:
    """One object for each."""
    shell.output_of("migrate")
    shell.in_store(lead)
    found = {one["name"]: one for one in map(json.loads, shell.run("duties", "--json").out.splitlines())}
    assert (found["clean"]["failures"], found["clean"]["error"]) == (2, "KeyError: 7")
    assert (found["prune"]["worker"], found["prune"]["took"]) == ("w1", 0.0015)
    assert found["follow"]["last_at"] is None


def test_a_pass_is_made_by_hand_and_audited(shell: Shell) -> None:
    """It says what it did."""
    shell.output_of("migrate")
    shell.in_store(lambda world: world.enqueue(expires_in=SECOND))
    shell.clock.advance(2)
    assert shell.output_of("duties", "run", "expire", "--note", "look").startswith("expire: 1 cancelled, in ")
    done = json.loads(shell.output_of("duties", "run", "expire", "--json"))
    assert (done["name"], done["did"], done["more"]) == ("expire", "", False)
    assert "duty expire" in shell.output_of("audit", "list")


def test_an_unknown_duty_is_a_wrong_command_line(shell: Shell) -> None:
    """With those that there are."""
    ran = shell.run("duties", "run", "rest")
    assert ran.code == 2
    assert "'prune'" in ran.err


@pytest.mark.parametrize(
    ("values", "level", "what"),
    [
        ({}, "ok", "1 duties are done, none fails or is late"),
        ({"failures": 1, "error": "KeyError: 7"}, "warn", "duty prune failed once: KeyError: 7"),
        ({"failures": 3, "error": "x"}, "bad", "duty prune failed 3 times in a row: x"),
        ({"late_by": 59}, "ok", "1 duties are done"),
        ({"late_by": 61}, "warn", "duty prune should have begun a pass 1m 1s ago."),
    ],
)
def test_the_doctor_finds_duties_that_fail_or_stand_still(
    shell: Shell, values: dict[str, Any], level: str, what: str
) -> None:
    """S104: by what the leader has reported; the check of the lead says if there is none."""
    late_by = values.pop("late_by", 0) * SECOND
    shell.output_of("migrate")

    async def report(world: World) -> None:
        now = world.now
        due = now - late_by
        one = DutyReport(name="prune", worker="w1", began_at=0, took=0, late=0, next_at=due, **values)
        request = LeadRequest(
            scope=ALL, name="duties", worker="w1", lease=60 * SECOND, reports=DutyReports(now, (one,))
        )
        await world.store.registry.lead(request)

    found = [json.loads(line) for line in shell.run("doctor", "--json").out.splitlines()]
    assert [one for one in found if one.get("check") == "duties"] == []
    shell.in_store(report)
    found = [json.loads(line) for line in shell.run("doctor", "--json").out.splitlines()]
    (duties,) = [one for one in found if one.get("check") == "duties"]
    assert duties["level"] == level
    assert what in duties["what"]
