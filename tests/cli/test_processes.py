"""The command as a process: pipes, exit codes, Ctrl-C, and a reader that stops reading."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.contract.world import World

COMMAND = [sys.executable, "-W", "error", "-m", "fairlane"]
LONG = 60
"""Seconds after which a process that should have ended is taken for one that hangs."""

SHOP = """
from fairlane import Fairlane
app = Fairlane({url!r})
@app.task(name="noop")
def noop(n: int = 0) -> None: ...
"""


def run(
    shell: Shell, *arguments: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, its output in pipes."""
    return subprocess.run(  # noqa: S603 (our own command)
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
        cwd=shell.folder,
        env={**environment, "FAIRLANE_URL": shell.url},
    )


@pytest.fixture
def full(store: Shell) -> Shell:
    """A store with more jobs than a pipe holds."""
    for _ in range(4):
        store.in_store(lambda world: world.enqueue_many(500))
    store.write("shop.py", SHOP.format(url=store.url))
    return store


def test_piped_output_is_plain_text(store: Shell) -> None:
    """No colour, no frame, nothing on standard error."""

    async def work(world: World) -> None:
        await world.enqueue()

    store.in_store(work)
    ran = run(store, "jobs", "list")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0].startswith("ID          ")
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["version"], 0),
        (["jobs", "count", "--json"], 0),
        (["jobs", "list", "--limit", "none"], 2),
        (["jobs", "show", "00000000-0000-0000-0000-000000000009"], 3),
        (["jobs", "count", "--url", "sqlite:///nowhere/x.db"], 4),
        (["jobs", "count", "--app", "nowhere:app"], 5),
    ],
)
def test_the_exit_code_reaches_the_shell(store: Shell, arguments: list[str], code: int) -> None:
    """As documented; errors are on standard error, without a traceback."""
    ran = run(store, *arguments)
    assert ran.returncode == code
    assert bool(ran.stderr) is (code != 0)
    assert "Traceback" not in ran.stderr


def test_a_terminal_that_knows_no_unicode_gets_codes(store: Shell) -> None:
    """Instead of an error in the middle of a table."""

    async def work(world: World) -> None:
        await world.enqueue(tags=("grün",))

    store.in_store(work)
    (id,) = [str(job.id) for job in store.in_store(lambda world: world.find_all())]
    ran = run(
        store, "jobs", "show", id, environment={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "gr\\xfcn" in ran.stdout


def test_a_reader_that_stops_reading_ends_the_command_quietly(full: Shell) -> None:
    """`fairlane jobs list | head -1`."""
    words = [*COMMAND, "--url", full.url, "jobs", "list", "--limit", "2000", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=full.folder) as command:  # noqa: S603 (our own command)
        assert command.stdout is not None
        assert command.stderr is not None
        assert json.loads(command.stdout.readline())["state"] == "ready"
        command.stdout.close()
        errors = command.stderr.read()
        assert (command.wait(LONG), errors) == (141, b"")


def test_ctrl_c_ends_the_command_with_its_own_code(full: Shell) -> None:
    """While it waits for input; nothing is printed that looks like a fault."""
    words = [*COMMAND, "--app", "shop:app", "enqueue", "noop", "--tenant", "acme", "--stdin"]
    with subprocess.Popen(  # noqa: S603 (our own command)
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=full.folder
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        assert command.stderr is not None
        # A whole batch: its first line shows that the command waits for the next.
        command.stdin.write(b"{}\n" * 1000)
        command.stdin.flush()
        for _ in range(1000):
            assert command.stdout.readline().endswith(b" created\n")
        # One that comes just before Python begins to read only sets its flag: people press the keys again.
        # They wait a while for it: a second one in the middle of its end would be another story.
        for _ in range(LONG):
            command.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                command.wait(10)
                break
        assert command.wait(1) == 130
        assert command.stderr.read() == b""
        command.stdin.close()
    assert len(full.in_store(lambda world: world.find_all(page=1000))) == 3000


def test_the_package_can_be_run_as_a_module_from_anywhere(tmp_path: Path) -> None:
    """`python -m fairlane`, with the command's own name in its help."""
    ran = subprocess.run(  # noqa: S603 (our own command)
        [*COMMAND, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=LONG
    )
    assert ran.stdout.startswith("Usage: fairlane [OPTIONS] COMMAND [ARGS]...\n")
