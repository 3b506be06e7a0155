"""What a new user does in the first ten minutes, played with the real command and real worker processes.

The README's example, a wrong option, a job that fails, and a rolling deploy with a new version of a task.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_sessions import FILE
from tests.processes.conftest import PATIENCE, wait_for
from tools.pages import ROOT, blocks

COMMAND = (sys.executable, "-W", "error", "-m", "fairlane")
MAILS = 100

FIRST_VERSION = """
from fairlane import Fairlane

app = Fairlane("sqlite:///shop.db", name="shop")

@app.task(name="mail")
async def mail(to: str) -> str:
    return "old worker"
"""

SECOND_VERSION = """
from typing import Any

from fairlane import Fairlane

app = Fairlane("sqlite:///shop.db", name="shop")

@app.task(name="mail", version=2)
async def mail(to: str, language: str) -> str:
    return f"new worker, {language}"

@mail.upcast(from_version=1)
def add_language(arguments: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, "language": "en"}
"""


class Newcomer:
    """Somebody with an empty folder, a terminal and nothing configured."""

    def __init__(self, folder: Path) -> None:
        """Begin with nothing."""
        self.folder = folder
        self.environment = {
            name: text for name, text in os.environ.items() if not name.startswith("FAIRLANE_")
        }
        self.workers: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> None:
        """Write a file, as the README says."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(  # noqa: S603 (our own command)
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def fairlane(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `fairlane` to its end."""
        return self.run(*COMMAND, *arguments)

    def answers(self, *arguments: str) -> list[Any]:
        """Return what a command answers for programs, a value a line."""
        done = self.fairlane(*arguments, "--url", "sqlite:///shop.db", "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start_worker(self, application: str) -> subprocess.Popen[str]:
        """Start a worker that stays; its log goes to a file."""
        log = (self.folder / f"{application.partition(':')[0]}.log").open("w", encoding="utf-8")
        worker = subprocess.Popen(  # noqa: S603 (our own command)
            [*COMMAND, "worker", application, "--log", "json"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=log,
            text=True,
        )
        log.close()
        self.workers.append(worker)
        return worker

    def counts(self) -> Any:
        """Return how many jobs there are, by state."""
        (found,) = self.answers("jobs", "count")
        return found

    def log(self, application: str) -> str:
        """Return what a worker has logged so far."""
        return (self.folder / f"{application.partition(':')[0]}.log").read_text(encoding="utf-8")

    def leave(self) -> None:
        """Stop whatever still runs."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(PATIENCE)


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    """A new user in an empty folder."""
    somebody = Newcomer(tmp_path)
    yield somebody
    somebody.leave()


def example() -> str:
    """Return the example of the README."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (text,) = (block.text for block in blocks(page) if block.info == f"python{FILE}shop.py")
    return text


def test_the_readme_s_example_runs_as_it_stands(newcomer: Newcomer) -> None:
    """A thousand jobs and one more, all succeeded, in three commands."""
    newcomer.write("shop.py", example())
    made = newcomer.run(sys.executable, "shop.py")
    assert (made.returncode, made.stderr) == (0, "")
    worked = newcomer.fairlane("worker", "shop:app", "--burst")
    assert worked.returncode == 0
    assert "1001 attempts settled, 0 of them failed" in worked.stderr
    assert newcomer.fairlane("doctor", "--url", "sqlite:///shop.db").returncode == 0


@pytest.mark.parametrize("wrong", ["retry=3", 'retry="exponential"', "queue=5", "rate=5", "classify=3"])
def test_a_wrong_option_is_named_before_anything_runs(newcomer: Newcomer, wrong: str) -> None:
    """One line that names the option; no traceback, and no worker that serves nobody."""
    text = example().replace("retry=Backoff.delays(10, 30, 60)", wrong)
    assert wrong in text
    newcomer.write("shop.py", text)
    refused = newcomer.fairlane("worker", "shop:app", "--burst")
    assert refused.returncode == 5, refused.stderr
    assert wrong.partition("=")[0] in refused.stderr
    assert "send_mail" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_job_that_fails_can_be_followed_to_its_end(newcomer: Newcomer) -> None:
    """The log says why, the list says where it is, and the other tenants' jobs go on."""
    text = example().replace('return f"sent to {to}"', 'raise ValueError(f"{to} is unknown here")')
    newcomer.write("shop.py", text.replace("Backoff.delays(10, 30, 60)", "Backoff.delays(0, 0, 0)"))
    assert newcomer.run(sys.executable, "shop.py").returncode == 0
    worked = newcomer.fairlane("worker", "shop:app", "--burst")
    assert worked.returncode == 0
    assert "ann@example.org is unknown here" in worked.stderr
    (dead,) = newcomer.answers("jobs", "list", "--state", "dead")
    assert (dead["tenant"], dead["attempt"], dead["max_attempts"]) == ("acme", 4, 4)
    (others,) = newcomer.answers("jobs", "count", "--tenant", "globex")
    assert others["succeeded"] == 1_000
    shown = newcomer.fairlane("jobs", "show", dead["id"], "--url", "sqlite:///shop.db")
    assert "ValueError" in shown.stdout
    assert "is unknown here" in shown.stdout


def test_a_rolling_deploy_with_a_new_version_loses_no_job(newcomer: Newcomer) -> None:
    """Jobs of the new version come before the new worker does, and the old one leaves last: none dies."""
    newcomer.write("old_shop.py", FIRST_VERSION)
    newcomer.write("new_shop.py", SECOND_VERSION)
    newcomer.write("old_fill.py", _filling("old_shop", '"ann"'))
    newcomer.write("new_fill.py", _filling("new_shop", '"ann", "fr"'))
    assert newcomer.run(sys.executable, "old_fill.py").returncode == 0
    assert newcomer.run(sys.executable, "new_fill.py").returncode == 0
    old = newcomer.start_worker("old_shop:app")
    wait_for(lambda: "version_unknown" in newcomer.log("old_shop:app"), lambda: newcomer.log("old_shop:app"))
    new = newcomer.start_worker("new_shop:app")
    wait_for(lambda: "worker_started" in newcomer.log("new_shop:app"), lambda: newcomer.log("new_shop:app"))
    assert newcomer.counts()["dead"] == 0
    old.send_signal(signal.SIGTERM)
    assert old.wait(PATIENCE) == 0

    def are_finished() -> bool:
        found = newcomer.counts()
        return bool(found["succeeded"] + found["dead"] == 2 * MAILS)

    wait_for(are_finished, lambda: str(newcomer.counts()))
    new.send_signal(signal.SIGTERM)
    assert new.wait(PATIENCE) == 0
    assert newcomer.counts()["succeeded"] == 2 * MAILS
    results = newcomer.run(sys.executable, "-c", _RESULTS)
    assert results.returncode == 0, results.stderr
    ran: Counter[str] = Counter(json.loads(results.stdout))
    assert ran["new worker, fr"] == MAILS, "jobs of the new version run on the new worker only"
    assert ran["old worker"] + ran["new worker, en"] == MAILS


def _filling(module: str, arguments: str) -> str:
    return (
        f"from {module} import app, mail\n"
        f'app.enqueue_many(mail.using(tenant=f"t{{n % 5}}").bind({arguments}) for n in range({MAILS}))\n'
    )


_RESULTS = """
import json
from new_shop import app
print(json.dumps([job.result() for job in app.jobs.each()]))
"""
