"""The demo with the dashboard open: it prints a way in, shows the noisy tenant, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from fairlane.cli.main import cli
from fairlane.lab.demo import with_web

PATIENCE = 60.0
LINK = re.compile(r"(http\S+)/sign-in\?link=(\S+)")


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_the_demo_stays_open_with_a_dashboard_until_it_is_interrupted(tmp_path: Path) -> None:
    """Its first lines have a link that signs in; Ctrl-C ends all processes and removes the store."""
    command = [
        sys.executable,
        "-m",
        "fairlane",
        "demo",
        "--web",
        "--port",
        "0",
        "--seconds",
        "8",
        "--seed",
        "7",
    ]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as demo:  # noqa: S603
        assert demo.stdout is not None
        found = next(
            match for line in demo.stdout if (match := re.search(r"(http\S+)/sign-in\?link=(\S+)", line))
        )
        with httpx2.Client(base_url=found[1], follow_redirects=True, headers={"origin": found[1]}) as browser:
            page = browser.post("/sign-in", data={"link": found[2]})
            until = time.monotonic() + PATIENCE
            while "noisy" not in page.text and time.monotonic() < until:
                page = browser.get("/")
        assert "noisy" in page.text
        demo.send_signal(signal.SIGINT)
        assert demo.wait(PATIENCE) == 0
        assert "stopped" in demo.stdout.read()
    assert list(tmp_path.iterdir()) == []


def test_a_dashboard_that_cannot_be_served_is_told_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo ends, and says why."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    printed: list[str] = []
    monkeypatch.setattr(with_web, "_STOP_WITHIN", PATIENCE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.executable", "/bin/false")
        assert with_web.run_with_web(printed.append, seconds=8, seed=7) == 1
    assert "ended with code 1" in printed[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--web", "--svg", "x.svg"], ["--port", "8080"]])
def test_options_that_do_not_go_together_are_refused(words: list[str]) -> None:
    """None of them is silently without effect."""
    ran = CliRunner().invoke(cli, ["demo", *words])
    assert ran.exit_code == 2
    assert "--web" in ran.output
