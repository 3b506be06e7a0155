"""`fairlane history`: finished jobs into a file, and back (S116)."""

from __future__ import annotations

import json
from pathlib import Path

from fairlane.model.lifecycle.states import State
from tests.cli.shell import Shell
from tests.contract.world import World


async def end(world: World) -> None:
    """Let three jobs end, each in its way."""
    for state in (State.SUCCEEDED, State.CANCELLED, State.DEAD):
        await world.bring_to(state)


async def forget(world: World) -> None:
    """Remove all that has ended."""
    await world.prune(succeeded=0, cancelled=0, dead=0, results=0)


def test_finished_jobs_go_into_a_file_and_come_back(shell: Shell, tmp_path: Path) -> None:
    """Each once, as they were; a second time they are known."""
    shell.output_of("migrate")
    shell.in_store(end)
    file = tmp_path / "old.jsonl"
    assert shell.run("history", "export", str(file)).err == "3 jobs written.\n"
    before = shell.output_of("jobs", "list", "--json")
    shell.in_store(forget)
    assert shell.output_of("history", "import", str(file)) == "3 jobs are back; 0 were known already.\n"
    assert shell.output_of("jobs", "list", "--json") == before
    again = json.loads(shell.output_of("history", "import", str(file), "--json"))
    assert again == {"restored": 0, "known": 3}


def test_an_export_is_chosen_by_filters_and_made_in_parts(shell: Shell) -> None:
    """To standard output; the note says where to go on."""
    shell.output_of("migrate")
    shell.in_store(end)
    dead = shell.run("history", "export", "-", "--state", "dead")
    assert [json.loads(line)["state"] for line in dead.out.splitlines()] == ["dead"]
    first = shell.run("history", "export", "-", "--limit", "2")
    cursor = first.err.rpartition(" ")[2].strip()
    rest = shell.run("history", "export", "-", "--cursor", cursor)
    found = [json.loads(line)["state"] for line in (first.out + rest.out).splitlines()]
    assert found == ["dead", "cancelled", "succeeded"]
    assert shell.run("history", "export", "-", "--since", "1h").code == 0


def test_what_is_wrong_is_said_in_one_line(shell: Shell, tmp_path: Path) -> None:
    """A bad line by its number; a state that is not over; a file that is not there."""
    shell.output_of("migrate")
    file = tmp_path / "bad.jsonl"
    file.write_text("{}\n")
    bad = shell.run("history", "import", str(file))
    assert (bad.code, "line 1: format: is None" in bad.err) == (2, True)
    assert "is not one of" in shell.run("history", "export", "-", "--state", "ready").err
    assert "does not exist" in shell.run("history", "import", str(tmp_path / "none")).err
    assert shell.run("history", "export", str(tmp_path / "no" / "file")).code != 0
    assert shell.run("history", "export", "-", "--cursor", "x").code == 2
