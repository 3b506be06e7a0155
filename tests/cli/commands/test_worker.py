"""`fairlane up`, `worker`, `scheduler` and `relay` as processes: they do their work and stop when told to."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane, Outbox, State

COMMAND = [sys.executable, "-W", "error", "-m", "fairlane"]
LONG = 60
"""Seconds after which something that should have happened is taken for something that never will."""

SHOP = """
from fairlane import Fairlane
app = Fairlane({url!r})
@app.task(name="double")
async def double(n: int) -> int:
    return 2 * n
@app.task(name="measure", sensitive=["shoe_size"], max_attempts=1)
def measure(shoe_size: int) -> None:
    raise ValueError("password=hunter2")
@app.task(name="collector")
async def collector() -> list[int]:
    import gc
    return [gc.get_threshold()[0], gc.get_freeze_count()]
@app.task(name="interval")
async def interval() -> float:
    import sys
    return sys.getswitchinterval()
def connect():
    import sqlite3
    return sqlite3.connect({shop!r})
"""


class Shop:
    """An application in a folder, its store in the same folder, and its own database."""

    def __init__(self, folder: Path) -> None:
        """Write the module; the store is not there yet."""
        self.folder = folder
        self.url = f"sqlite:///{folder}/jobs.db"
        self.database = folder / "shop.db"
        self.app = Fairlane(self.url)
        self.double = self.app.task(name="double")(double)
        self.collector = self.app.task(name="collector")(collector)
        self.interval = self.app.task(name="interval")(interval)
        (folder / "shop.py").write_text(SHOP.format(url=self.url, shop=str(self.database)), encoding="utf-8")

    def add(self, line: str) -> None:
        """Add a line to the module."""
        with (self.folder / "shop.py").open("a", encoding="utf-8") as module:
            module.write(f"{line}\n")

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLANE_")}
        return subprocess.Popen(  # noqa: S603 (our own command)
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=environment,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command to its end."""
        with self.popen(*arguments) as command:
            out, err = command.communicate(timeout=LONG)
        return command.returncode, out, err


async def double(n: int) -> int:
    """Stand for the task; workers have their own."""
    return 2 * n


async def collector() -> list[int]:
    """Stand for the task, as above."""
    return []


async def interval() -> float:
    """Stand for the task, as above."""
    return 0.0


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """A shop whose connections are closed afterwards."""
    made = Shop(tmp_path)
    yield made
    made.app.close()


def eventually(fact: Callable[[], bool]) -> None:
    """Wait for a fact, much longer than it should take."""
    until = time.monotonic() + LONG
    while not fact():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def test_up_makes_the_store_runs_jobs_and_stops_when_told_to(shop: Shop) -> None:
    """One command, from nothing; SIGTERM is a good end."""
    with shop.popen("up", "shop:app") as command:
        assert command.stderr is not None
        # Whoever opens an empty file first migrates it: the command must have done so by itself.
        assert any(
            line.startswith("Created the store with schema ") for line in iter(command.stderr.readline, "")
        )
        job = shop.double.using(tenant="acme").enqueue(21)
        assert job.result(timeout=LONG) == 42
        command.send_signal(signal.SIGTERM)
        _, err = command.communicate(timeout=LONG)
    assert command.returncode == 0
    assert "Traceback" not in err


def test_a_burst_ends_when_nothing_is_left(shop: Shop) -> None:
    """The application may be named by argument or by option."""
    for words in (["worker", "shop:app", "--burst"], ["--app", "shop:app", "worker", "--burst"]):
        job = shop.double.using(tenant="acme").enqueue(4)
        code, out, _ = shop.run(*words)
        assert (code, out) == (0, "")
        assert job.refresh().state is State.SUCCEEDED


@pytest.mark.parametrize(("chosen", "kept"), [(None, 5_000), (9_999, 9_999), (0, 0)])
def test_the_collector_looks_seldom_and_not_at_what_was_imported(
    shop: Shop, chosen: int | None, kept: int
) -> None:
    """It would find nothing: attempts are no cycles. A value that the application has set stays."""
    if chosen is not None:
        shop.add(f"import gc; gc.set_threshold({chosen})")
    job = shop.collector.using(tenant="acme").enqueue()
    shop.run("worker", "shop:app", "--burst")
    every, frozen = job.result(timeout=LONG)
    assert every == kept
    assert frozen > 10_000


@pytest.mark.parametrize(("chosen", "kept"), [(None, 0.001), (0.02, 0.02), (0.0001, 0.0001)])
def test_a_computing_handler_gives_way_to_the_store_s_thread_soon(
    shop: Shop, chosen: float | None, kept: float
) -> None:
    """By the interval at which threads switch. A value that the application has set stays."""
    if chosen is not None:
        shop.add(f"import sys; sys.setswitchinterval({chosen})")
    job = shop.interval.using(tenant="acme").enqueue()
    shop.run("worker", "shop:app", "--burst")
    assert job.result(timeout=LONG) == pytest.approx(kept)


def test_a_published_task_can_be_enqueued_without_its_application(shop: Shop) -> None:
    """A worker that was here once has told the store what its tasks take."""
    shop.run("worker", "shop:app", "--burst")
    words = ["--url", shop.url, "enqueue", "double", "--tenant", "acme"]
    assert shop.run(*words, "n=3")[0] == 0
    code, _, err = shop.run(*words, "n=many")
    assert code == 1
    assert "arguments.n: is of type str" in err


def test_what_a_task_calls_secret_stays_so_without_its_application(shop: Shop) -> None:
    """S6: its worker has published the names; the error's text is redacted, in the log as on the screen."""
    shop.run("--app", "shop:app", "migrate")
    code, id, _ = shop.run("--app", "shop:app", "enqueue", "measure", "shoe_size=44", "--tenant", "acme")
    assert code == 0
    _, _, log = shop.run("worker", "shop:app", "--burst")
    shown = shop.run("--url", shop.url, "jobs", "show", id.split()[0])[1]
    assert '{"shoe_size":"[redacted]"}' in shown
    assert "ValueError (retryable): password=[redacted]" in shown
    assert "hunter2" not in log + shown


def test_the_log_of_a_worker_is_lines_for_people_and_objects_for_programs(shop: Shop) -> None:
    """On standard error, with the time."""
    shop.double.using(tenant="acme").enqueue(1)
    _, _, plain = shop.run("worker", "shop:app", "--burst")
    assert plain
    assert all(line[:4].isdigit() for line in plain.splitlines())
    for form in (["--json"], ["--log", "json"]):
        _, _, objects = shop.run("worker", "shop:app", "--burst", *form)
        assert {"time", "level", "message"} <= set(json.loads(objects.splitlines()[0]))


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("is_asked", [False, True])
def test_the_traceback_of_a_failed_attempt_is_logged_if_asked_for(
    shop: Shop, form: str, is_asked: bool
) -> None:
    """By `--log-tracebacks`, without secrets; a record is one line but for that."""
    shop.run("worker", "shop:app", "--burst")
    shop.run("enqueue", "measure", "--tenant", "acme", "shoe_size=41", "--url", shop.url)
    asked = ["--log-tracebacks"] if is_asked else []
    _, _, log = shop.run("worker", "shop:app", "--burst", "--log", form, *asked)
    assert ("Traceback (most recent call last)" in log) == is_asked
    assert "hunter2" not in log
    is_one_line_each = all(line[:4].isdigit() or line.startswith("{") for line in log.splitlines())
    assert is_one_line_each == (form == "json" or not is_asked)


def test_a_scheduler_leads_until_it_is_stopped(shop: Shop) -> None:
    """`doctor` sees who leads, and finds nothing wrong with it; Ctrl-C is a good end."""
    shop.run("--url", shop.url, "migrate")
    with shop.popen("scheduler", "shop:app") as command:
        eventually(lambda: "duties: led by scheduler" in shop.run("--url", shop.url, "doctor")[1])
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=LONG)
    assert command.returncode == 0
    assert "led by" not in shop.run("--url", shop.url, "doctor")[1]


# ── relay ────────────────────────────────────────────────────────────────────


def fill(shop: Shop, *numbers: int) -> None:
    """Put jobs into the shop's outbox."""
    outbox = Outbox(shop.app)
    with sqlite3.connect(shop.database) as db:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name LIKE 'fairlane%'").fetchall():
            db.executescript(Outbox.ddl("sqlite"))
        for number in numbers:
            outbox.add(db.execute, shop.double.using(tenant="acme").bind(number))
    db.close()


@pytest.mark.parametrize("source", [["--sqlite", "shop.db"], ["--connect", "shop:connect"]])
def test_a_relay_moves_what_is_in_the_outbox(shop: Shop, source: list[str]) -> None:
    """Once, and says how many; a second time there is nothing."""
    fill(shop, 1, 2, 3)
    assert shop.run("relay", "shop:app", *source, "--once")[:2] == (0, "3 job(s) moved.\n")
    assert shop.app.jobs.count()[State.READY] == 3
    assert shop.run("relay", "shop:app", *source, "--once", "--json")[:2] == (0, '{"moved":0}\n')


def test_a_relay_goes_on_until_it_is_told_to_stop(shop: Shop) -> None:
    """What comes later is moved too; SIGTERM is a good end."""
    fill(shop, 1)
    with shop.popen("relay", "shop:app", "--sqlite", "shop.db", "--poll", "20ms") as command:
        eventually(lambda: shop.app.jobs.count()[State.READY] == 1)
        fill(shop, 2)
        eventually(lambda: shop.app.jobs.count()[State.READY] == 2)
        command.send_signal(signal.SIGTERM)
        _, err = command.communicate(timeout=LONG)
    assert command.returncode == 0
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "give the outbox: either --connect MODULE:FUNCTION or --sqlite FILE"),
        (["--sqlite", "a.db", "--connect", "shop:connect"], 2, "give the outbox"),
        (["--connect", "shop:nothing"], 5, "connect: shop:nothing is not a function."),
        (["--connect", "connect"], 5, "connect: 'connect' is not a valid name."),
        (
            ["--sqlite", "missing.db"],
            4,
            "Error: the outbox cannot be read: OperationalError: unable to open",
        ),
    ],
)
def test_a_relay_without_an_outbox_says_how_to_name_one(
    shop: Shop, words: list[str], code: int, message: str
) -> None:
    """A usage error, or a setting that is wrong."""
    shop.run("--url", shop.url, "migrate")
    ended, _, err = shop.run("relay", "shop:app", *words, "--once")
    assert ended == code
    assert message in err
