"""The command on a terminal: tables, and questions before what cannot be undone."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

import pytest

from tests.cli.shell import Shell

COMMAND = [sys.executable, "-W", "error", "-m", "fairlane"]
LONG = 60


def run(shell: Shell, *arguments: str, typed: str = "", **environment: str) -> tuple[int, str]:
    """Run the command on a terminal; return its exit code and output."""
    master, terminal = pty.openpty()
    with subprocess.Popen(  # noqa: S603 (our own command)
        [*COMMAND, "--url", shell.url, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=shell.folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", **environment},
    ) as command:
        os.close(terminal)
        os.write(master, typed.encode())
        written = b""
        # A terminal whose last writer is gone ends in an error on some systems, in nothing on others.
        while part := _read(master):
            written += part
        code = command.wait(LONG)
    os.close(master)
    return code, written.decode()


def _read(master: int) -> bytes:
    there, _, _ = select.select([master], [], [], LONG)
    assert there, "the command waits for something"
    try:
        return os.read(master, 65_536)
    except OSError:
        return b""


def test_a_terminal_gets_a_table_with_a_bold_head(store: Shell) -> None:
    """Through rich, which is installed here."""
    store.in_store(lambda world: world.enqueue())
    code, written = run(store, "jobs", "list")
    assert code == 0
    assert "\x1b[1mSTATE" in written
    assert "acme" in written


def test_json_on_a_terminal_is_json(store: Shell) -> None:
    """No colours in it."""
    store.in_store(lambda world: world.enqueue())
    code, written = run(store, "jobs", "count", "--json")
    assert code == 0
    assert written.startswith('{"delayed":0,"ready":1,')


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 2), ("y\n", 0, 0), ("\x04", 130, 2)])
def test_what_cannot_be_undone_is_asked_for(store: Shell, answer: str, code: int, left: int) -> None:
    """No is a refusal, yes does it, the end of input is neither."""
    store.in_store(lambda world: world.enqueue_many(2))
    ended, written = run(store, "tenants", "purge", "acme", "--note", "left us", typed=answer)
    assert "Cancel all waiting jobs of tenant acme? [y/N]:" in written
    assert ended == code
    assert store.run("jobs", "count", "--json").objects[0]["ready"] == left
